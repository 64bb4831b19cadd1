//! Curves as pictures: files that `docs/benchmarks.md` shows.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use svg::Document;
use svg::node::element::{Circle, Group, Line as Stroke, Polyline, Rectangle, Text};

/// Of one panel, in pixels.
const PANEL: (f64, f64) = (460.0, 300.0);
/// Between a panel's border and its axes: left, top, right, bottom.
const MARGIN: (f64, f64, f64, f64) = (64.0, 30.0, 14.0, 44.0);
/// Height of the title, and of one line of the legend.
const LINE: f64 = 18.0;
/// What is ours first, then the others. They differ in brightness too.
const COLOURS: [&str; 6] = ["#0b5fa5", "#58a6dd", "#b3400a", "#e69f00", "#5f5f5f", "#9b59b6"];

/// One curve: values by size.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Curves with the same axes, both logarithmic.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    pub x: &'static str,
    pub y: &'static str,
    pub curves: Vec<Curve>,
}

/// A picture: panels beside each other, whose curves have the same names.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The file is `benchmarks-NAME.svg`.
    pub name: &'static str,
    pub title: String,
    pub panels: Vec<Panel>,
}

impl Plot {
    fn file(&self) -> String {
        format!("benchmarks-{}.svg", self.name)
    }

    /// Writes the picture to a folder.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let file = folder.join(self.file());
        fs::write(&file, self.draw()).with_context(|| format!("writing {}", file.display()))
    }

    /// The picture in a page.
    pub fn link(&self) -> String {
        format!("![{}]({})\n\n", self.title, self.file())
    }

    /// The names of all curves, in the order of their colours.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for curve in self.panels.iter().flat_map(|panel| &panel.curves) {
            if !names.contains(&curve.name.as_str()) {
                names.push(&curve.name);
            }
        }
        names
    }

    fn draw(&self) -> String {
        let names = self.names();
        let width = PANEL.0 * self.panels.len().max(1) as f64;
        let top = LINE * 1.5;
        let legend = top + PANEL.1;
        let height = legend + LINE * (names.len() as f64 + 0.5);
        let mut document = Document::new()
            .set("viewBox", (0.0, 0.0, width, height))
            .set("width", width)
            .set("height", height)
            .set("font-family", "sans-serif")
            .set("font-size", 12)
            // Readable on a dark page too.
            .add(Rectangle::new().set("width", width).set("height", height).set("fill", "white"))
            .add(Text::new(&self.title).set("x", 10.0).set("y", LINE).set("font-weight", "bold"));
        for (number, panel) in self.panels.iter().enumerate() {
            let place = format!("translate({} {top})", PANEL.0 * number as f64);
            document = document.add(panel.draw(&names).set("transform", place));
        }
        for (number, name) in names.iter().enumerate() {
            let y = legend + LINE * (number as f64 + 0.5);
            let sample = Stroke::new().set("x1", 12.0).set("x2", 36.0).set("y1", y).set("y2", y);
            document = document
                .add(sample.set("stroke", colour(number)).set("stroke-width", 3))
                .add(Text::new(*name).set("x", 44.0).set("y", y + 4.0));
        }
        document.to_string() + "\n"
    }
}

fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// A logarithmic axis, between two logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Axis {
    first: f64,
    last: f64,
}

impl Axis {
    /// From the least value to the greatest, with some room beside them.
    fn around(values: impl Iterator<Item = f64>) -> Axis {
        const ROOM: f64 = 0.15;
        let logs = values.filter(|value| *value > 0.0).map(f64::log10);
        let (least, most) = logs.fold((f64::MAX, f64::MIN), |(least, most), log| (least.min(log), most.max(log)));
        if least > most { Axis { first: 0.0, last: 1.0 } } else { Axis { first: least - ROOM, last: most + ROOM } }
    }

    /// From the power of ten at or below the least value to the one at or above the greatest.
    fn of_powers(values: impl Iterator<Item = f64> + Clone) -> Axis {
        let values = values.filter(|value| *value > 0.0);
        let Some(least) = values.clone().reduce(f64::min) else { return Axis { first: 0.0, last: 1.0 } };
        let first = least.log10().floor();
        let last = values.fold(least, f64::max).log10().ceil();
        Axis { first, last: last.max(first + 1.0) }
    }

    /// 0 at the first value, 1 at the last.
    fn place(self, value: f64) -> f64 {
        (value.log10() - self.first) / (self.last - self.first)
    }

    /// The powers of ten on it.
    fn powers(self) -> impl Iterator<Item = f64> {
        (self.first.ceil() as i32..=self.last.floor() as i32).map(|power| 10f64.powi(power))
    }
}

/// A number as short as it can be read: 0.1, 20, 4000, 1,000,000.
fn number(value: f64) -> String {
    if value < 1.0 {
        return format!("{value}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digits.len() > 4 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Panel {
    fn draw(&self, names: &[&str]) -> Group {
        let (left, top, right, bottom) = MARGIN;
        let (width, height) = (PANEL.0 - left - right, PANEL.1 - top - bottom);
        let points = || self.curves.iter().flat_map(|curve| curve.points.iter());
        let (across, up) = (Axis::around(points().map(|p| p.0)), Axis::of_powers(points().map(|p| p.1)));
        let rounded = |pixels: f64| (pixels * 10.0).round() / 10.0;
        let x = |value: f64| rounded(left + width * across.place(value));
        let y = |value: f64| rounded(top + height * (1.0 - up.place(value)));

        let mut group = Group::new();
        for tick in up.powers() {
            let line = Stroke::new().set("x1", left).set("x2", left + width).set("y1", y(tick)).set("y2", y(tick));
            let label = Text::new(number(tick)).set("x", left - 6.0).set("y", y(tick) + 4.0);
            group = group.add(line.set("stroke", "#d0d0d0")).add(label.set("text-anchor", "end"));
        }
        // Below the axis stand the sizes that were measured.
        let mut sizes: Vec<f64> = points().map(|p| p.0).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        for size in sizes {
            let line = Stroke::new().set("x1", x(size)).set("x2", x(size)).set("y1", top).set("y2", top + height);
            let label = Text::new(number(size)).set("x", x(size)).set("y", top + height + 16.0);
            group = group.add(line.set("stroke", "#e8e8e8")).add(label.set("text-anchor", "middle"));
        }
        let caption = Text::new(self.x).set("x", left + width / 2.0).set("y", top + height + 34.0);
        group = group.add(caption.set("text-anchor", "middle"));
        group = group.add(Text::new(self.y).set("x", 6.0).set("y", top - 10.0));
        for curve in &self.curves {
            let colour = colour(names.iter().position(|name| *name == curve.name).unwrap_or_default());
            let points: Vec<(f64, f64)> =
                curve.points.iter().filter(|p| p.0 > 0.0 && p.1 > 0.0).map(|p| (x(p.0), y(p.1))).collect();
            let list: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
            let line = Polyline::new().set("points", list.join(" ")).set("fill", "none").set("stroke", colour);
            group = group.add(line.set("stroke-width", 2));
            for (x, y) in points {
                group = group.add(Circle::new().set("cx", x).set("cy", y).set("r", 3).set("fill", colour));
            }
        }
        group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_go_from_power_to_power() {
        let powers = |values: &[f64]| Axis::of_powers(values.iter().copied());
        assert_eq!(powers(&[3.0, 250.0]), Axis { first: 0.0, last: 3.0 });
        assert_eq!(powers(&[10.0]), Axis { first: 1.0, last: 2.0 });
        assert_eq!(powers(&[0.0]), Axis { first: 0.0, last: 1.0 });
        assert_eq!(powers(&[3.0, 250.0]).powers().collect::<Vec<_>>(), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(Axis { first: 0.0, last: 2.0 }.place(10.0), 0.5);
        let around = Axis::around([1.0, 100.0].into_iter());
        assert!(around.place(1.0) > 0.0 && around.place(100.0) < 1.0 && around.powers().count() == 3);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.1, 1.0, 4000.0, 100_000.0].map(number);
        assert_eq!(shown, ["0.1", "1", "4000", "100,000"]);
    }

    #[test]
    fn a_plot_has_each_curve_and_escapes_names() {
        let curve = |name: &str, y| Curve { name: name.into(), points: vec![(1.0, y), (10.0, 2.0 * y)] };
        let panel = Panel { x: "threads", y: "ms", curves: vec![curve("a < b", 1.0), curve("other", 5.0)] };
        let plot = Plot { name: "some", title: "Some title".into(), panels: vec![panel.clone(), panel] };
        let text = plot.draw();
        assert_eq!(text.matches("<polyline").count(), 4);
        assert!(text.contains("a &lt; b") && text.contains("Some title"), "{text}");
        assert_eq!(plot.link(), "![Some title](benchmarks-some.svg)\n\n");
    }
}
