//! Pages for a browser. They need no network and no other file.
//!
//! All text of targets passes [`escape`](crate::escape::escape) first, and maud's escapes of HTML then. The browser runs the one script
//! whose hash the page names, and loads nothing.

mod process;

use maud::{DOCTYPE, Markup, PreEscaped, html};

pub use process::{Shown, page as process};

/// What a page looks like, and its search.
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Hashes of both, as `Content-Security-Policy` has them.
const STYLE_HASH: &str = "SsmZ/Y5z7gfd6ogafSX7JAi12oYVSFwHOPAG05H3ZOw=";
const SCRIPT_HASH: &str = "5XPkQMCkyA5D3BTXvuDriXYWC0aRrA/KhIRCtgE6BEg=";

/// What a page consists of.
#[derive(Debug)]
pub struct Page<'a> {
    /// Its name, safe to print.
    pub title: &'a str,
    /// What stands above the search.
    pub head: Markup,
    /// What can be searched for.
    pub search: &'a str,
    /// The rest. The search shows those elements with `data-part` that match, and what they are in. `data-set`: the number of the set
    /// of ranks that a part is about.
    pub main: Markup,
    /// The sets, a JSON list of strings.
    pub sets: &'a str,
}

impl Page<'_> {
    /// The whole document.
    pub fn document(&self) -> String {
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{STYLE_HASH}'; script-src 'sha256-{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'"
        );
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { (self.title) }
                    (self.head)
                    p.search {
                        label { "Search: " input #search type="search" placeholder=(self.search); }
                        " " span #found {}
                    }
                    (self.main)
                    script #sets type="application/json" { (PreEscaped(self.sets)) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use sha2::{Digest as _, Sha256};

    use super::{SCRIPT, SCRIPT_HASH, STYLE, STYLE_HASH};

    #[test]
    fn the_hashes_are_those_of_the_files() {
        let hash = |text: &str| base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text.as_bytes()));
        assert_eq!((STYLE_HASH, SCRIPT_HASH), (&*hash(STYLE), &*hash(SCRIPT)));
    }
}
