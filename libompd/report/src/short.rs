//! Names of functions, short enough to be read.
//!
//! Templates of C++ make names of hundreds of letters. A report shows them as people write them; JSON and `-v` have them whole.

/// Letters of a name that is shown as it is.
const SHORT: usize = 48;

/// Names of the standard library as compilers have them, and as people write them. The first that fits counts.
const STANDARD: &[(&str, &str)] = &[
    ("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"),
    ("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>", "std::string"),
    ("std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"),
    ("std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >", "std::string"),
    ("std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char>>", "std::string"),
    ("std::__cxx11::", "std::"),
    ("std::__1::", "std::"),
];

/// A name as people write it: the standard library's own namespaces are left out, and of a long name the arguments of templates.
pub fn name(whole: &str) -> String {
    let mut short = whole.to_owned();
    for (compilers, peoples) in STANDARD {
        if short.contains(compilers) {
            short = short.replace(compilers, peoples);
        }
    }
    if short.chars().count() <= SHORT { short } else { without_arguments(&short) }
}

/// The name with `<…>` for the arguments of templates. Without a matching bracket it stays as it is.
fn without_arguments(name: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        // `operator<`, `operator<<=`, `operator->`: no brackets.
        if let Some(symbols) = rest.strip_prefix("operator") {
            let end = symbols.find(|c: char| !"<>=-".contains(c)).unwrap_or(symbols.len());
            let taken = "operator".len() + end;
            if depth == 0 {
                out.push_str(&rest[..taken]);
            }
            rest = &rest[taken..];
            continue;
        }
        // `f.<locals>.g`, `main::<lambda(int)>`: names themselves.
        let begins_name = matches!(out.chars().next_back(), None | Some('.' | ':'));
        match letter {
            '<' if depth > 0 || !begins_name => {
                if depth == 0 {
                    out.push_str("<…>");
                }
                depth += 1;
            }
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => out.push(letter),
            _ => {}
        }
        rest = &rest[letter.len_utf8()..];
    }
    if depth == 0 { out } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn standard_names_are_those_that_people_write() {
        assert_eq!(name("std::__cxx11::list<int>::sort"), "std::list<int>::sort");
        let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
        assert_eq!(name(&format!("f({string} const&)")), "f(std::string const&)");
    }

    #[test]
    fn names_in_brackets_stay() {
        let python = "_threadpool_controller_decorator.<locals>.decorator.<locals>.wrapper";
        assert_eq!(name(python), python);
        let lambda = "solver::relax(std::vector<double, std::allocator<double> >&)::<lambda(int)>";
        assert_eq!(name(lambda), "solver::relax(std::vector<…>&)::<lambda(int)>");
    }

    #[test]
    fn arguments_of_templates_are_left_out_of_long_names_only() {
        assert_eq!(name("solver::Grid<double>::relax"), "solver::Grid<double>::relax");
        let long =
            "std::vector<std::pair<int, std::map<long, double> >, my::allocator<int> >::emplace_back<int&, long>";
        assert_eq!(name(long), "std::vector<…>::emplace_back<…>");
        let longest = format!("f<int>{}", "x".repeat(42));
        assert_eq!(
            (name(&longest), name(&format!("{longest}x"))),
            (longest.clone(), format!("f<…>{}", "x".repeat(43)))
        );
        let argument = "apply<&my::very::long::name::of::a::type::operator->, int>::run";
        assert_eq!(name(argument), "apply<…>::run");
        let operator = "ns::operator<< <std::char_traits<char>, std::map<std::pair<int, int>, std::vector<long> > >";
        assert_eq!(name(operator), "ns::operator<< <…>");
        let arrow = "std::unique_ptr<my::very::long::name::of::a::type, my::deleter>::operator->";
        assert_eq!(name(arrow), "std::unique_ptr<…>::operator->");
    }

    #[test]
    fn damaged_names_stay_as_they_are() {
        let open = format!("{}<int", "a".repeat(60));
        assert_eq!(name(&open), open);
        let closed = format!("{}>::x", "b".repeat(60));
        assert_eq!(name(&closed), closed);
    }
}
