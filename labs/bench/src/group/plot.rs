//! Pictures of what was measured, a line for each tree, as plain SVG.
//!
//! They need lines and words only, which are a few elements of SVG; no library is worth that.

use std::fmt::Write;

use sapwood::TreeKind;

/// Size of the picture and of the room around its axes, in pixels.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 52.0;
/// Room of one name beside the axes.
const NAME_HEIGHT: f64 = 20.0;
/// Room of the name of a mark.
const MARK_HEIGHT: f64 = 12.0;
/// About how many values an axis names.
const TICKS: f64 = 6.0;
/// An axis of lengths names each that is four times as long as the one before; where that would be
/// more names than there is room for, 16 times.
const LENGTH_STEP: f64 = 4.0;
const LENGTH_NAMES_MAX: f64 = 8.0;

/// Colours that most people tell apart (M. Okabe, K. Ito, "Color Universal Design", 2008), and
/// dashes, by which lines can be distinguished without colours.
const LOOKS: [[&str; 2]; 7] = [
    ["#56b4e9", "6 4"],
    ["#cc79a7", "2 3"],
    ["#0072b2", "none"],
    ["#009e73", "8 3 2 3"],
    ["#d55e00", "none"],
    ["#e69f00", "4 4"],
    ["#000000", "none"],
];

/// What the axis from left to right is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Across {
    /// Numbers from 0 on.
    Numbers,
    /// Lengths in bytes, each doubling as wide as the next.
    Lengths,
}

/// A moment that a vertical line shows.
pub(super) struct Mark {
    pub(super) at: f64,
    pub(super) name: &'static str,
}

/// One tree.
pub(super) struct Curve {
    pub(super) tree: TreeKind,
    /// From the left to the right, each with its height.
    pub(super) points: Vec<[f64; 2]>,
    pub(super) marks: Vec<Mark>,
}

impl Curve {
    /// A step for each value, from 0 on: the first one is as high as the first value.
    pub(super) fn of_steps(tree: TreeKind, values: impl IntoIterator<Item = f64>) -> Self {
        let mut points = vec![[0.0, 0.0]];
        for (at, value) in values.into_iter().enumerate() {
            points.extend([[at as f64, value], [(at + 1) as f64, value]]);
        }
        Self { tree, points, marks: Vec::new() }
    }
}

/// The whole picture.
pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    pub(super) across: Across,
    /// What the axes are called.
    pub(super) across_name: &'a str,
    pub(super) up_name: &'a str,
    pub(super) curves: &'a [Curve],
}

impl Chart<'_> {
    /// Draws it.
    pub(super) fn draw(&self) -> String {
        let most = |of: usize| {
            let points = self.curves.iter().flat_map(|curve| &curve.points);
            points.map(|point| point[of]).fold(0.0, f64::max)
        };
        let across = match self.across {
            Across::Numbers => Axis::new(most(0), LEFT, WIDTH - RIGHT),
            Across::Lengths => Axis::of_lengths(self.shortest(), most(0), LEFT, WIDTH - RIGHT),
        };
        let up = Axis::new(most(1), HEIGHT - BOTTOM, TOP);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
            escaped(self.title)
        );
        grid(&mut svg, &across, &up);
        self.name_axes(&mut svg);
        for (index, curve) in self.curves.iter().enumerate() {
            draw_curve(&mut svg, curve, index, &across, &up);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn shortest(&self) -> f64 {
        let points = self.curves.iter().flat_map(|curve| &curve.points);
        points.map(|point| point[0]).fold(f64::INFINITY, f64::min)
    }

    fn name_axes(&self, svg: &mut String) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text x=\"16\" y=\"{:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {:.1})\">\
             {}</text>",
            f64::midpoint(LEFT, right),
            bottom + 38.0,
            escaped(self.across_name),
            f64::midpoint(TOP, bottom),
            f64::midpoint(TOP, bottom),
            escaped(self.up_name)
        );
    }
}

fn draw_curve(svg: &mut String, curve: &Curve, index: usize, across: &Axis, up: &Axis) {
    let [colour, dash] = LOOKS[index % LOOKS.len()];
    for mark in &curve.marks {
        let x = across.place(mark.at);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"{colour}\" \
             stroke-width=\"1\" stroke-dasharray=\"1 3\"/>\n\
             <text x=\"{:.1}\" y=\"{}\" font-size=\"10\" fill=\"{colour}\">{}</text>",
            HEIGHT - BOTTOM,
            x + 2.0,
            TOP + 10.0 + MARK_HEIGHT * index as f64,
            escaped(mark.name)
        );
    }
    let place =
        |point: &[f64; 2]| format!("{:.1},{:.1}", across.place(point[0]), up.place(point[1]));
    let points: Vec<String> = curve.points.iter().map(place).collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
         stroke-dasharray=\"{dash}\"/>",
        points.join(" ")
    );
    let (x, y) = (WIDTH - RIGHT + 12.0, TOP + NAME_HEIGHT * index as f64);
    let _ = writeln!(
        svg,
        "<line x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{colour}\" \
         stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>\n\
         <text x=\"{}\" y=\"{}\">{}</text>",
        x + 26.0,
        x + 32.0,
        y + 4.0,
        curve.tree
    );
}

/// A value that an axis names.
struct Tick {
    value: f64,
    name: String,
}

/// An axis: the values at its ends, where these are, and what is named.
struct Axis {
    first: f64,
    last: f64,
    is_of_lengths: bool,
    from: f64,
    to: f64,
    ticks: Vec<Tick>,
}

impl Axis {
    /// A linear one from 0 on.
    fn new(most: f64, from: f64, to: f64) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let decade = 10_f64.powf((most / TICKS).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
        let step = steps.into_iter().find(|step| most / step <= TICKS).unwrap_or(10.0 * decade);
        let count = (most / step).ceil();
        let tick = |at: u32| {
            let value = f64::from(at) * step;
            Tick { value, name: ((value * 1e6).round() / 1e6).to_string() }
        };
        let ticks = (0..=count as u32).map(tick).collect();
        Self { first: 0.0, last: count * step, is_of_lengths: false, from, to, ticks }
    }

    /// One on which each doubling is as wide as the next.
    fn of_lengths(least: f64, most: f64, from: f64, to: f64) -> Self {
        let first = if least.is_finite() { least.max(1.0) } else { 1.0 };
        let last = most.max(2.0 * first);
        let is_full = (last / first).log(LENGTH_STEP) > LENGTH_NAMES_MAX;
        let step = if is_full { LENGTH_STEP * LENGTH_STEP } else { LENGTH_STEP };
        let longer = |value: &f64| Some(value * step).filter(|value| *value <= last);
        let values = std::iter::successors(Some(first), longer);
        let ticks = values.map(|value| Tick { value, name: length_name(value) }).collect();
        Self { first, last, is_of_lengths: true, from, to, ticks }
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.is_of_lengths {
            true => (value / self.first).log2() / (self.last / self.first).log2(),
            false => value / self.last,
        };
        self.from + share * (self.to - self.from)
    }
}

fn length_name(bytes: f64) -> String {
    let units = [("MiB", f64::from(1_u32 << 20)), ("KiB", f64::from(1_u32 << 10))];
    match units.into_iter().find(|unit| bytes >= unit.1) {
        Some((name, unit)) => format!("{} {name}", (bytes / unit * 10.0).round() / 10.0),
        None => format!("{bytes} B"),
    }
}

fn grid(svg: &mut String, across: &Axis, up: &Axis) {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for Tick { value, name } in &up.ticks {
        let y = up.place(*value);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    for Tick { value, name } in &across.ticks {
        let x = across.place(*value);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#eeeeee\"/>\n\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{name}</text>",
            bottom + 16.0
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(svg: &str) -> Vec<&str> {
        svg.lines().filter(|line| line.starts_with("<polyline")).collect()
    }

    fn points(line: &str) -> Vec<&str> {
        line.split('"').nth(1).unwrap().split(' ').collect()
    }

    #[test]
    fn each_tree_is_a_line_with_a_step_for_each_member() {
        let curves = [
            Curve::of_steps(TreeKind::Static, [1.0, 2.0, 7.0]),
            Curve::of_steps(TreeKind::Adaptive, [1.0, 2.0, 3.0]),
        ];
        let (across_name, up_name) = ("members", "ms");
        let across = Across::Numbers;
        let title = "a < b & c";
        let svg = Chart { title, across, across_name, up_name, curves: &curves }.draw();
        assert!(svg.contains(">a &lt; b &amp; c<"), "{svg}");
        let lines = lines(&svg);
        assert_eq!(lines.len(), 2);
        for line in lines {
            assert_eq!(points(line).len(), 7);
        }
        assert!(svg.contains(">static<") && svg.contains(">adaptive<"), "{svg}");
    }

    #[test]
    fn lengths_that_double_are_as_far_apart_and_moments_have_names() {
        let rates = [[32_768.0, 1.0], [131_072.0, 4.0], [524_288.0, 8.0]];
        let mark = Mark { at: 131_072.0, name: "here" };
        let curve = Curve { tree: TreeKind::List, points: rates.to_vec(), marks: vec![mark] };
        let (across, curves) = (Across::Lengths, [curve]);
        let (across_name, up_name) = ("length", "MB/s");
        let svg = Chart { title: "t", across, across_name, up_name, curves: &curves }.draw();
        let at = |point: &&str| point.split(',').next().unwrap().parse::<f64>().unwrap();
        let places: Vec<f64> = points(lines(&svg)[0]).iter().map(at).collect();
        assert!((places[1] - places[0] - (places[2] - places[1])).abs() < 0.3, "{svg}");
        for name in ["32 KiB", "128 KiB", "512 KiB", "here"] {
            assert!(svg.contains(&format!(">{name}<")), "{name}: {svg}");
        }
    }

    #[test]
    fn an_axis_names_a_few_round_values() {
        let values = |axis: &Axis| axis.ticks.iter().map(|tick| tick.value).collect::<Vec<_>>();
        assert_eq!(values(&Axis::new(31.0, 0.0, 1.0)), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(Axis::new(0.0, 0.0, 1.0).last, 1.0);
        assert_eq!(length_name(67_108_864.0), "64 MiB");
        let kib = 1024.0;
        let sums = Axis::of_lengths(8.0, 8.0 * kib * kib, 0.0, 1.0);
        assert_eq!(values(&sums)[..3], [8.0, 128.0, 2.0 * kib]);
        let broadcasts = Axis::of_lengths(32.0 * kib, 64.0 * kib * kib, 0.0, 1.0);
        assert_eq!(values(&broadcasts)[..3], [32.0 * kib, 128.0 * kib, 512.0 * kib]);
    }
}
