//! The picture: three panels on logarithmic axes, as plain SVG.
//!
//! It needs lines, marks and words only, which are a few elements of SVG; no library is worth that.
//! Each series has a colour and a mark of its own, so that it can be distinguished without colours.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Series;
use super::row::Row;

/// Size of a panel and of the room around its axes, in pixels.
const PANEL_WIDTH: f64 = 380.0;
const PANEL_HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 92.0;

/// Colours that most people tell apart (M. Okabe, K. Ito, "Color Universal Design", 2008).
const COLOURS: [&str; 6] = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#000000"];

/// What a panel shows of a tree.
type Value = fn(&Row) -> Option<f64>;

/// One point; `is_model` where it was not simulated.
struct Point {
    x: f64,
    y: f64,
    is_model: bool,
}

/// The points of one kind of tree.
struct Line {
    name: String,
    points: Vec<Point>,
}

/// The whole picture.
pub(super) fn picture(rows: &[Row]) -> String {
    let panels: [(&str, Value); 3] = [
        ("Request to answer", Row::wave_us),
        ("Front-end's processor per wave", Row::front_end_us),
        ("Start-up", Row::start_us),
    ];
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {PANEL_HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        PANEL_WIDTH * panels.len() as f64,
    );
    for (index, (title, of)) in panels.into_iter().enumerate() {
        let lines = lines(rows, of);
        // Writing to a string cannot fail.
        let _ = writeln!(svg, "<g transform=\"translate({},0)\">", PANEL_WIDTH * index as f64);
        draw(&mut svg, title, &lines);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// The series of a panel. Trees of a given depth all have one size and are no line.
fn lines(rows: &[Row], of: Value) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in rows.iter().filter(|row| !matches!(row.series, Series::Depth(_))) {
        let name = match row.series {
            Series::FanOut(fan_out) => format!("fan-out {fan_out}"),
            _ => row.series.to_string(),
        };
        let Some(y) = of(row).filter(|y| *y > 0.0) else { continue };
        let x = f64::from(row.tree.back_ends());
        let point = Point { x, y, is_model: row.figures.is_none() };
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name, points: vec![point] }),
        }
    }
    lines
}

/// A logarithmic axis of whole decades.
struct Axis {
    first: i32,
    last: i32,
    /// Where the first decade lies, and where the last.
    from: f64,
    to: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let decades: BTreeSet<i32> = values
            .flat_map(|value| [value.log10().floor(), value.log10().ceil()])
            .map(|d| d as i32)
            .collect();
        let first = decades.first().copied().unwrap_or(0);
        let last = decades.last().copied().unwrap_or(1).max(first + 1);
        Self { first, last, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first);
        self.from + share * (self.to - self.from)
    }

    fn decades(&self) -> impl Iterator<Item = (i32, f64)> + '_ {
        (self.first..=self.last).map(|decade| (decade, self.place(10_f64.powi(decade))))
    }
}

fn draw(svg: &mut String, title: &str, lines: &[Line]) {
    let all = || lines.iter().flat_map(|line| &line.points);
    let x = Axis::over(all().map(|point| point.x), LEFT, PANEL_WIDTH - RIGHT);
    let y = Axis::over(all().map(|point| point.y), PANEL_HEIGHT - BOTTOM, TOP);
    grid(svg, title, &x, &y);
    for (index, line) in lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        for pair in line.points.windows(2) {
            let dash = if pair[1].is_model { " stroke-dasharray=\"4 4\"" } else { "" };
            let _ = writeln!(
                svg,
                "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" \
                 stroke-width=\"2\"{dash}/>",
                x.place(pair[0].x),
                y.place(pair[0].y),
                x.place(pair[1].x),
                y.place(pair[1].y),
            );
        }
        for point in &line.points {
            let fill = if point.is_model { "#ffffff" } else { colour };
            mark(svg, index, x.place(point.x), y.place(point.y), colour, fill);
        }
        legend(svg, index, &line.name, colour);
    }
}

/// Title, decades and their names.
fn grid(svg: &mut String, title: &str, x: &Axis, y: &Axis) {
    let (bottom, right) = (PANEL_HEIGHT - BOTTOM, PANEL_WIDTH - RIGHT);
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{title}</text>"
    );
    for (decade, place) in x.decades() {
        let _ = writeln!(
            svg,
            "<line x1=\"{place:.1}\" y1=\"{TOP}\" x2=\"{place:.1}\" y2=\"{bottom}\" \
             stroke=\"#dddddd\"/>\n\
             <text x=\"{place:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            bottom + 16.0,
            count_name(decade),
        );
    }
    for (decade, place) in y.decades() {
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{place:.1}\" x2=\"{right}\" y2=\"{place:.1}\" \
             stroke=\"#dddddd\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            place + 4.0,
            time_name(decade),
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">back-ends</text>",
        f64::midpoint(LEFT, right),
        bottom + 34.0,
    );
}

/// The mark of a series: disc, square, triangle, rhombus.
fn mark(svg: &mut String, index: usize, x: f64, y: f64, colour: &str, fill: &str) {
    let style = format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\"");
    let _ = match index % 4 {
        0 => writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" {style}/>"),
        1 => writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\" {style}/>",
            x - 3.5,
            y - 3.5
        ),
        2 => writeln!(svg, "<path d=\"M{x:.1} {:.1} l5 8 h-10 z\" {style}/>", y - 5.0),
        _ => writeln!(svg, "<path d=\"M{x:.1} {:.1} l5 5 l-5 5 l-5 -5 z\" {style}/>", y - 5.0),
    };
}

/// The name of a series below the axis, three in a row.
fn legend(svg: &mut String, index: usize, name: &str, colour: &str) {
    let x = LEFT + (index % 3) as f64 * 100.0;
    let y = PANEL_HEIGHT - BOTTOM + 54.0 + (index / 3) as f64 * 18.0;
    mark(svg, index, x, y, colour, colour);
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{name}</text>", x + 10.0, y + 4.0);
}

/// A power of ten of microseconds.
fn time_name(decade: i32) -> String {
    match decade {
        ..0 => format!("1e{decade} us"),
        0..3 => format!("{} us", 10_i64.pow(decade as u32)),
        3..6 => format!("{} ms", 10_i64.pow(decade as u32 - 3)),
        _ => format!("{} s", 10_f64.powi(decade - 6)),
    }
}

/// A power of ten of back-ends.
fn count_name(decade: i32) -> String {
    match decade {
        ..3 => format!("{}", 10_f64.powi(decade)),
        3..6 => format!("{}k", 10_f64.powi(decade - 3)),
        _ => format!("{}M", 10_f64.powi(decade - 6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_decades_and_place_values_between() {
        let axis = Axis::over([20.0, 3000.0].into_iter(), 0.0, 300.0);
        assert_eq!((axis.first, axis.last), (1, 4));
        assert_eq!((axis.place(10.0), axis.place(100.0), axis.place(1e4)), (0.0, 100.0, 300.0));
        // One value alone still has an axis.
        let single = Axis::over([10.0].into_iter(), 0.0, 100.0);
        assert_eq!(single.place(10.0), 0.0);
    }

    #[test]
    fn decades_have_names() {
        assert_eq!([1, 4, 6, 7].map(time_name), ["10 us", "10 ms", "1 s", "10 s"]);
        assert_eq!([1, 3, 5, 6].map(count_name), ["10", "1k", "100k", "1M"]);
    }

    #[test]
    fn a_picture_without_trees_is_still_one() {
        let svg = picture(&[]);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }
}
