//! What a runtime family wants to know of its structs.

/// Everything one runtime family reads from memory.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// Short name of the family, as used in reports and profile files.
    pub family: &'static str,
    /// Structs, under the runtime's own names.
    pub structs: &'static [StructSchema],
    /// Global variables.
    pub globals: &'static [GlobalSchema],
}

impl Schema {
    /// The struct called `name`.
    pub fn find(&self, name: &str) -> Option<&'static StructSchema> {
        self.structs.iter().find(|s| s.name == name)
    }
}

/// One struct.
#[derive(Debug, Clone, Copy)]
pub struct StructSchema {
    /// The name facts are filed under: the runtime's own.
    pub name: &'static str,
    /// Names the type may have in DWARF (struct tag or typedef), tried in order. Empty: just `name`.
    pub dwarf_names: &'static [&'static str],
    /// What the struct is.
    pub meaning: &'static str,
    /// The fields read.
    pub fields: &'static [FieldSchema],
}

/// One field of a struct.
#[derive(Debug, Clone, Copy)]
pub struct FieldSchema {
    /// Path of the member under the runtime's own names; nested members are joined by dots (`ts.team_id`).
    /// Anonymous members and one-member wrappers such as `std::atomic` are looked through.
    pub name: &'static str,
    /// What the field holds.
    pub meaning: &'static str,
}

/// One global variable.
#[derive(Debug, Clone, Copy)]
pub struct GlobalSchema {
    /// Symbol name.
    pub name: &'static str,
    /// What it holds.
    pub meaning: &'static str,
}
