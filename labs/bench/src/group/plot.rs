//! A picture of a broadcast: when each member had it, by tree, as plain SVG.
//!
//! It needs lines and words only, which are a few elements of SVG; no library is worth that.

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
/// About how many values an axis names.
const TICKS: f64 = 6.0;

/// Colours that most people tell apart (M. Okabe, K. Ito, "Color Universal Design", 2008), and
/// dashes, by which lines can be told apart without colours.
const LOOKS: [[&str; 2]; 7] = [
    ["#56b4e9", "6 4"],
    ["#cc79a7", "2 3"],
    ["#0072b2", "none"],
    ["#009e73", "8 3 2 3"],
    ["#d55e00", "none"],
    ["#e69f00", "4 4"],
    ["#000000", "none"],
];

/// One tree: when its members had the value, the soonest first, in milliseconds.
pub(super) struct Curve {
    pub(super) tree: TreeKind,
    pub(super) milliseconds: Vec<f64>,
}

/// The whole picture.
pub(super) fn draw(title: &str, curves: &[Curve]) -> String {
    let longest = curves.iter().map(|curve| curve.milliseconds.len()).max().unwrap_or(0);
    let times = curves.iter().flat_map(|curve| curve.milliseconds.iter().copied());
    let last = times.fold(0.0, f64::max);
    let members = Axis::new(longest as f64, LEFT, WIDTH - RIGHT);
    let times = Axis::new(last, HEIGHT - BOTTOM, TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
        escaped(title)
    );
    grid(&mut svg, &members, &times);
    for (index, curve) in curves.iter().enumerate() {
        let [colour, dash] = LOOKS[index % LOOKS.len()];
        let mut points = String::new();
        // A step for each member, from the begin of the broadcast on.
        let _ = write!(points, "{:.1},{:.1}", members.place(0.0), times.place(0.0));
        for (at, time) in curve.milliseconds.iter().enumerate() {
            let (from, to) = (members.place(at as f64), members.place((at + 1) as f64));
            let height = times.place(*time);
            let _ = write!(points, " {from:.1},{height:.1} {to:.1},{height:.1}");
        }
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dash}\"/>"
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
    svg.push_str("</svg>\n");
    svg
}

/// A linear axis from 0 on.
struct Axis {
    last: f64,
    step: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(most: f64, from: f64, to: f64) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let decade = 10_f64.powf((most / TICKS).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
        let step = steps.into_iter().find(|step| most / step <= TICKS).unwrap_or(10.0 * decade);
        Self { last: (most / step).ceil() * step, step, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        self.from + value / self.last * (self.to - self.from)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        (0..=(self.last / self.step).round() as u32).map(|at| f64::from(at) * self.step)
    }
}

fn grid(svg: &mut String, members: &Axis, times: &Axis) {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for tick in times.ticks() {
        let (y, name) = (times.place(tick), (tick * 1e6).round() / 1e6);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    for tick in members.ticks() {
        let (x, name) = (members.place(tick), (tick * 1e6).round() / 1e6);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#eeeeee\"/>\n\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{name}</text>",
            bottom + 16.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">members that have the value</text>\n\
         <text x=\"16\" y=\"{:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {:.1})\">ms\
         </text>",
        f64::midpoint(LEFT, right),
        bottom + 38.0,
        f64::midpoint(TOP, bottom),
        f64::midpoint(TOP, bottom)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tree_is_a_line_with_a_step_for_each_member() {
        let curve = |tree, milliseconds| Curve { tree, milliseconds };
        let curves = [
            curve(TreeKind::Static, vec![1.0, 2.0, 7.0]),
            curve(TreeKind::Adaptive, vec![1.0, 2.0, 3.0]),
        ];
        let svg = draw("a < b & c", &curves);
        assert!(svg.contains(">a &lt; b &amp; c<"), "{svg}");
        let lines: Vec<&str> = svg.lines().filter(|line| line.starts_with("<polyline")).collect();
        assert_eq!(lines.len(), 2);
        for line in lines {
            let points = line.split('"').nth(1).unwrap();
            assert_eq!(points.split(' ').count(), 7);
        }
        assert!(svg.contains(">static<") && svg.contains(">adaptive<"), "{svg}");
    }

    #[test]
    fn an_axis_names_a_few_round_values() {
        let ticks: Vec<f64> = Axis::new(31.0, 0.0, 1.0).ticks().collect();
        assert_eq!(ticks, [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(Axis::new(0.0, 0.0, 1.0).last, 1.0);
    }
}
