//! Merging what several origins say into one layout.

use std::collections::BTreeMap;

use crate::facts::{BitRange, FactSource, Facts, Field};

/// A struct, field or global that no origin could give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the location of {name} in this runtime is not known (no debug info, table, decoded code or profile gives it)")]
pub struct Missing {
    /// `struct.field`, `sizeof(struct)` or the global's name.
    pub name: String,
}

/// Two origins that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {} ({}) says {kept}, {} ({}) says {other}", kept_from.origin, kept_from.detail, other_from.origin, other_from.detail)]
pub struct Mismatch {
    /// `struct.field`, `sizeof(struct)` or the global's name.
    pub name: String,
    /// The value in use.
    pub kept: String,
    /// Who gave it.
    pub kept_from: FactSource,
    /// The value not used.
    pub other: String,
    /// Who gave that.
    pub other_from: FactSource,
}

/// A resolved layout: every value with its source.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    sizes: BTreeMap<String, (u64, FactSource)>,
    fields: BTreeMap<String, BTreeMap<String, (Field, FactSource)>>,
    globals: BTreeMap<String, (u64, FactSource)>,
}

impl Layout {
    /// Merges `origins`, most trusted first. The first origin to name a value wins; every later one that names the
    /// same value is compared with it. Field widths are compared only where both know them.
    pub fn resolve(origins: &[(FactSource, Facts)]) -> (Layout, Vec<Mismatch>) {
        let mut layout = Layout::default();
        let mut mismatches = Vec::new();
        for (source, facts) in origins {
            for (name, &size) in &facts.sizes {
                merge(
                    &mut layout.sizes,
                    name,
                    size,
                    source,
                    || format!("sizeof({name})"),
                    |v| v.to_string(),
                    |a, b| a == b,
                    &mut mismatches,
                );
            }
            for (of, fields) in &facts.fields {
                let known = layout.fields.entry(of.clone()).or_default();
                for (name, &field) in fields {
                    // Decoded code tells where a field is, not always how wide: let a later origin complete it.
                    if let Some((kept, _)) = known.get_mut(name)
                        && kept.size == 0
                        && agree(kept, &field)
                    {
                        kept.size = field.size;
                    }
                    merge(known, name, field, source, || format!("{of}.{name}"), describe, agree, &mut mismatches);
                }
            }
            for (name, &addr) in &facts.globals {
                merge(
                    &mut layout.globals,
                    name,
                    addr,
                    source,
                    || name.clone(),
                    |v| format!("{v:#x}"),
                    |a, b| a == b,
                    &mut mismatches,
                );
            }
        }
        (layout, mismatches)
    }

    /// The field `name` of struct `of`.
    ///
    /// # Errors
    /// [`Missing`] if no origin gave it.
    pub fn field(&self, of: &str, name: &str) -> Result<Field, Missing> {
        self.field_entry(of, name).map(|(f, _)| *f).ok_or_else(|| Missing { name: format!("{of}.{name}") })
    }

    /// Who gave the field.
    pub fn field_source(&self, of: &str, name: &str) -> Option<&FactSource> {
        self.field_entry(of, name).map(|(_, s)| s)
    }

    /// Size of struct `of` in bytes.
    ///
    /// # Errors
    /// [`Missing`] if no origin gave it.
    pub fn size_of(&self, of: &str) -> Result<u64, Missing> {
        self.sizes.get(of).map(|(v, _)| *v).ok_or_else(|| Missing { name: format!("sizeof({of})") })
    }

    /// Bytes from the start of struct `of` to the end of the last field that is known; 0 if none is.
    pub fn extent_of(&self, of: &str) -> u64 {
        let ends = self.fields.get(of).into_iter().flatten().map(|(_, (f, _))| f.offset.saturating_add(f.size));
        ends.max().unwrap_or(0)
    }

    /// Address of a global relative to the image (SVMA).
    ///
    /// # Errors
    /// [`Missing`] if no origin gave it.
    pub fn global(&self, name: &str) -> Result<u64, Missing> {
        self.globals.get(name).map(|(v, _)| *v).ok_or_else(|| Missing { name: name.to_owned() })
    }

    /// Who gave the global.
    pub fn global_source(&self, name: &str) -> Option<&FactSource> {
        self.globals.get(name).map(|(_, s)| s)
    }

    /// Every value with its source, as `(name, value, source)`, for reports.
    pub fn entries(&self) -> Vec<(String, String, &FactSource)> {
        let sizes = self.sizes.iter().map(|(n, (v, s))| (format!("sizeof({n})"), v.to_string(), s));
        let fields = self
            .fields
            .iter()
            .flat_map(|(of, fs)| fs.iter().map(move |(n, (f, s))| (format!("{of}.{n}"), describe(f), s)));
        let globals = self.globals.iter().map(|(n, (v, s))| (n.clone(), format!("{v:#x}"), s));
        sizes.chain(fields).chain(globals).collect()
    }

    fn field_entry(&self, of: &str, name: &str) -> Option<&(Field, FactSource)> {
        self.fields.get(of)?.get(name)
    }
}

/// Two answers for one field agree if they name the same bits; 0 as size means "not known".
fn agree(a: &Field, b: &Field) -> bool {
    let sizes = a.size == b.size || a.size == 0 || b.size == 0;
    match (a.bits, b.bits) {
        // The same bit may be counted from differently sized storage units.
        (Some(x), Some(y)) => first_bit(a, x) == first_bit(b, y) && x.width == y.width,
        (None, None) => a.offset == b.offset && sizes,
        _ => false,
    }
}

/// In bits from the start of the struct. No real offset takes more than 64 bits here, but one of a profile may.
fn first_bit(f: &Field, bits: BitRange) -> u128 {
    u128::from(f.offset) * 8 + u128::from(bits.shift)
}

fn describe(f: &Field) -> String {
    match f.bits {
        Some(b) => format!("{:#x} bit {} width {}", f.offset, b.shift, b.width),
        None => format!("{:#x}", f.offset),
    }
}

#[allow(clippy::too_many_arguments, reason = "one helper instead of the same ten lines for sizes, fields and globals")]
fn merge<V: Clone>(
    known: &mut BTreeMap<String, (V, FactSource)>,
    key: &str,
    value: V,
    source: &FactSource,
    name: impl FnOnce() -> String,
    show: impl Fn(&V) -> String,
    same: impl Fn(&V, &V) -> bool,
    mismatches: &mut Vec<Mismatch>,
) {
    match known.get(key) {
        None => {
            known.insert(key.to_owned(), (value, source.clone()));
        }
        Some((kept, kept_from)) if !same(kept, &value) => mismatches.push(Mismatch {
            name: name(),
            kept: show(kept),
            kept_from: kept_from.clone(),
            other: show(&value),
            other_from: source.clone(),
        }),
        Some(_) => {}
    }
}
