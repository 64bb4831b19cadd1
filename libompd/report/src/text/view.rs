//! What can be shown, and in which form.

/// The ways to show stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackView {
    /// Threads that read the same in one row.
    Rows,
    /// One row for each thread.
    All,
    /// One tree.
    Tree,
    /// The tree for other programs.
    Graph(Graph),
}

/// Formats other programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Graph {
    /// Graphviz.
    Dot,
    /// Flame graph tools.
    Folded,
    /// A picture.
    Svg,
}

/// The ways to show tasks and waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Rows.
    Table,
    /// A tree.
    Tree,
    /// For Graphviz.
    Dot,
    /// Drawn by Graphviz.
    Svg,
}

/// The view asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// No command.
    Summary,
    /// `threads`.
    Threads,
    /// `teams`.
    Teams,
    /// `tasks`.
    Tasks(Form),
    /// `waits`.
    Waits(Form),
    /// `loops`.
    Loops,
    /// `icvs`.
    Icvs,
    /// `stacks`.
    Stacks(StackView),
    /// `doctor`.
    Doctor,
    /// Why this thread (LWP) does not move.
    Why(i32),
    /// The stack of this thread.
    Stack(i32),
}

impl View {
    /// The view that these words ask for. They are the name of a command of `ompd-inspect`, or `summary` for none, and then an
    /// option that selects the form. `why` and `stack`, followed by the kernel id of a thread, are about one thread.
    pub fn of_words(words: &str) -> Option<View> {
        Some(match words.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            ["summary"] => View::Summary,
            ["threads"] => View::Threads,
            ["teams"] => View::Teams,
            ["tasks"] => View::Tasks(Form::Table),
            ["tasks", "--tree"] => View::Tasks(Form::Tree),
            ["tasks", "--dot"] => View::Tasks(Form::Dot),
            ["waits"] => View::Waits(Form::Table),
            ["waits", "--dot"] => View::Waits(Form::Dot),
            ["loops"] => View::Loops,
            ["icvs"] => View::Icvs,
            ["stacks"] => View::Stacks(StackView::Rows),
            ["stacks", "--all"] => View::Stacks(StackView::All),
            ["stacks", "--tree"] => View::Stacks(StackView::Tree),
            ["stacks", "--dot"] => View::Stacks(StackView::Graph(Graph::Dot)),
            ["stacks", "--folded"] => View::Stacks(StackView::Graph(Graph::Folded)),
            ["stacks", "--svg"] => View::Stacks(StackView::Graph(Graph::Svg)),
            ["doctor"] => View::Doctor,
            ["why", lwp] => View::Why(lwp.parse().ok()?),
            ["stack", lwp] => View::Stack(lwp.parse().ok()?),
            _ => return None,
        })
    }

    /// It says of a process that it hangs.
    pub fn has_verdicts(self) -> bool {
        matches!(self, View::Summary | View::Waits(_))
    }

    /// What is rendered is for another program to read: it has no title.
    pub fn is_for_programs(self) -> bool {
        matches!(
            self,
            View::Tasks(Form::Dot | Form::Svg) | View::Waits(Form::Dot | Form::Svg) | View::Stacks(StackView::Graph(_))
        )
    }

    /// What is rendered is to be drawn by Graphviz.
    pub fn is_picture(self) -> bool {
        matches!(self, View::Tasks(Form::Svg) | View::Waits(Form::Svg))
    }
}
