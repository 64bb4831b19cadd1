//! A line of a family's table of control variables.

use crate::icvs::registry::{Agrees, DefaultOf, Entry, Parse};
use crate::model::Reason;

/// How runtimes of one family keep a control variable, and what is different there from what the
/// specification says.
#[derive(Debug)]
pub(crate) struct Line<H> {
    pub(crate) entry: &'static Entry,
    /// How it is read.
    pub(crate) how: H,
    /// Variables of the environment that set it beside those of the entry.
    also: &'static [&'static str],
    pub(crate) parse: Parse,
    pub(crate) agrees: Agrees,
    pub(crate) default: DefaultOf,
}

/// A line with nothing different.
pub(crate) const fn line<H>(entry: &'static Entry, how: H) -> Line<H> {
    Line { entry, how, also: &[], parse: entry.parse, agrees: entry.agrees, default: entry.default }
}

impl<H> Line<H> {
    /// These variables set it as well.
    pub(crate) const fn also(mut self, variables: &'static [&'static str]) -> Self {
        self.also = variables;
        self
    }

    /// This is what texts of its variables say.
    pub(crate) const fn says(mut self, parse: Parse) -> Self {
        self.parse = parse;
        self
    }

    /// This is when a value is what a text says.
    pub(crate) const fn agrees(mut self, agrees: Agrees) -> Self {
        self.agrees = agrees;
        self
    }

    /// This is what it is where nothing is said.
    pub(crate) const fn by_default(mut self, default: DefaultOf) -> Self {
        self.default = default;
        self
    }

    /// All variables of the environment that set it.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &'static str> {
        self.entry.variables.iter().chain(self.also).copied()
    }

    /// The line as others may know it.
    pub(crate) fn kept(&self, unread: Option<Reason>) -> Kept {
        Kept { entry: self.entry, variables: self.variables().collect(), unread }
    }
}

/// What a family says of a control variable.
#[derive(Debug)]
pub struct Kept {
    /// The control variable.
    pub entry: &'static Entry,
    /// All variables of the environment that set it there.
    pub variables: Vec<&'static str>,
    /// Why it is not read, if so.
    pub unread: Option<Reason>,
}
