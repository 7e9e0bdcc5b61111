//! A frozen job as a picture: a time line of the ranks, and when each came to the same collectives.
//!
//! The picture needs no script and nothing from elsewhere, and is light or dark as its reader has
//! it. `time_line` and `matrix` draw its two parts, each below the one before.

mod matrix;
mod time_line;

use maud::{Markup, PreEscaped, html};
use sapwood_report::cut;
use sapwood_report::freeze::Freeze;

use crate::event_names::visible;

/// The drawing's own units.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 20.0;
/// Where rows begin, behind their names, and where they end.
const LEFT: f64 = 120.0;
const RIGHT: f64 = 1180.0;
/// Between two lines of text.
const LINE: f64 = 17.0;
/// Characters of a line of text, at most.
const LETTERS: usize = 165;
/// Lines for what is missing, at most.
const MISSING_MAX: usize = 6;
const STYLE: &str = include_str!("style.css");

/// A part of the picture and its height.
struct Part {
    markup: Markup,
    height: f64,
}

/// The picture.
#[must_use]
pub fn encode(freeze: &Freeze) -> String {
    let parts = [head(freeze), time_line::part(freeze), matrix::part(freeze)];
    let mut top = MARGIN;
    let placed: Vec<(f64, Markup)> = parts
        .into_iter()
        .filter(|part| part.height > 0.0)
        .map(|part| {
            let at = top;
            top += part.height + MARGIN;
            (at, part.markup)
        })
        .collect();
    let title = visible(&freeze.head());
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {top}"))
            width=(WIDTH) height=(top) role="img" aria-label=(title) {
            title { (title) }
            style { (PreEscaped(STYLE)) }
            rect.ground width=(WIDTH) height=(top) {}
            @for (at, markup) in &placed {
                g transform=(format!("translate(0 {at:.1})")) { (markup) }
            }
        }
    };
    picture.into_string() + "\n"
}

/// What was frozen, why, and what is missing.
fn head(freeze: &Freeze) -> Part {
    let statement = cut(&visible(&freeze.statement), LETTERS);
    let missing = freeze.unknown.iter().take(MISSING_MAX).map(|what| format!("missing: {what}"));
    let mut missing: Vec<String> = missing.map(|line| cut(&line, LETTERS)).collect();
    if freeze.unknown.is_empty() {
        missing.push("nothing of the window is missing".to_owned());
    }
    let class = if freeze.unknown.is_empty() { "faint" } else { "warn" };
    let mut below = vec![("faint", freeze.window())];
    if !statement.is_empty() {
        below.push(("warn", statement));
    }
    let wrong = freeze.mixed.iter().take(MISSING_MAX).map(|one| format!("wrong: {}", one.text));
    below.extend(wrong.map(|line| ("warn", cut(&visible(&line), LETTERS))));
    below.extend(missing.into_iter().map(|line| (class, line)));
    let height = 22.0 + below.len() as f64 * LINE;
    let markup = html! {
        text.title x=(MARGIN) y="14" { (visible(&freeze.head())) }
        @for (at, (class, line)) in below.iter().enumerate() {
            text class=(class) x=(MARGIN) y=(number(34.0 + at as f64 * LINE)) { (line) }
        }
    };
    Part { markup, height }
}

/// A place, to a tenth.
fn number(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::freeze::slices::tests::freeze;

    #[test]
    fn a_picture_says_what_is_missing_and_escapes_what_it_names() {
        let picture = encode(&freeze());
        assert!(picture.contains("missing: 3 calls overwritten"), "{picture}");
        assert!(picture.contains("&lt;prog&gt; &amp; ") && !picture.contains("<prog>"));
        assert!(!picture.contains("<script") && !picture.contains("NaN"), "{picture}");
        assert!(picture.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn a_window_without_calls_is_a_picture_too() {
        let picture = encode(&Freeze::default());
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }
}
