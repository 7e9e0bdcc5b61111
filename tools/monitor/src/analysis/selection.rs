//! Which measures are looked at more closely: those that the command line names, or the heaviest.

use std::collections::{BTreeMap, BTreeSet};

use sapwood_profile::{BINS_MAX, Function, Measure, Metric, Round};

/// The most histograms over all ranks in one round; more are left out and counted.
pub const HISTOGRAMS_MAX: usize = 256;
/// Events that are taken by themselves in a round, by the time of all ranks in them.
const HEAVIEST: usize = 4;
/// The most events that have been among the heaviest and stay.
const AUTOMATIC_MAX: usize = 8;
/// Bins of a histogram, unless told otherwise.
const BINS: u32 = 20;

/// A histogram that was asked for: `EVENT[:METRIC][,bins=N]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramWish {
    event: String,
    metric: Metric,
    bins: u32,
}

impl HistogramWish {
    /// Reads it. An event is named as in the table: with the sizes of its communicators, as
    /// `MPI_Bcast (5-8)`, or without for all of them.
    ///
    /// # Errors
    /// One line: what is wrong.
    pub fn read(text: &str) -> Result<Self, String> {
        let (rest, bins) = match text.rsplit_once(",bins=") {
            None => (text, BINS),
            Some((rest, bins)) => {
                let bins = bins.parse().ok().filter(|bins| (1..=BINS_MAX).contains(bins));
                let bins =
                    bins.ok_or_else(|| format!("'{text}': bins is a number from 1 to {BINS_MAX}"))?;
                (rest, bins)
            }
        };
        let named = Metric::ALL.into_iter().find_map(|metric| {
            let event = rest.strip_suffix(metric.name())?.strip_suffix(':')?;
            Some((event, metric))
        });
        // What is behind a colon may be a part of a region's name, but not of a function's.
        if let Some((function, metric)) = rest.rsplit_once(':').filter(|_| named.is_none())
            && Function::named(function.split(' ').next().unwrap_or(function)).is_some()
        {
            return Err(format!(
                "'{text}': there is no metric '{metric}'; metrics are calls, time_ns and bytes"
            ));
        }
        let (event, metric) = named.unwrap_or((rest, Metric::TimeNs));
        if event.is_empty() {
            return Err(format!(
                "'{text}': name an event, such as MPI_Allreduce:time_ns,bins=20; metrics are \
                 calls, time_ns and bytes"
            ));
        }
        Ok(Self { event: event.to_owned(), metric, bins })
    }
}

/// What is looked at, from round to round.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    wishes: Vec<HistogramWish>,
    /// The places of wishes whose event has appeared.
    found: BTreeSet<usize>,
    is_automatic: bool,
    /// Events that have been among the heaviest, in the order in which they came.
    heaviest: Vec<Measure>,
}

/// The measures of one round, with their bins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// At most [`HISTOGRAMS_MAX`].
    pub measures: BTreeMap<Measure, u32>,
    /// How many more there would be.
    pub left_out: u64,
}

impl Selection {
    /// Of these wishes alone.
    #[must_use]
    pub const fn of(wishes: Vec<HistogramWish>) -> Self {
        Self { wishes, found: BTreeSet::new(), is_automatic: false, heaviest: Vec::new() }
    }

    /// Of these wishes, and the heaviest events beside them.
    #[must_use]
    pub const fn automatic(wishes: Vec<HistogramWish>) -> Self {
        Self { wishes, found: BTreeSet::new(), is_automatic: true, heaviest: Vec::new() }
    }

    /// Events that were asked for by name and have never appeared.
    #[must_use]
    pub fn never_found(&self) -> Vec<String> {
        let wishes = self.wishes.iter().enumerate().filter(|(at, _)| !self.found.contains(at));
        wishes.map(|(_, wish)| wish.event.clone()).collect()
    }

    /// The measures for the ranks of a round. An event that was among the heaviest once stays, so
    /// that its histogram can be followed.
    pub fn select(&mut self, round: &Round) -> Selected {
        let mut selected = Selected::default();
        let mut add = |measure: Measure, bins| {
            if selected.measures.len() < HISTOGRAMS_MAX || selected.measures.contains_key(&measure)
            {
                // What was asked for by name keeps its bins.
                selected.measures.entry(measure).or_insert(bins);
            } else {
                selected.left_out += 1;
            }
        };
        for (at, wish) in self.wishes.iter().enumerate() {
            let fits = |event: &&sapwood_profile::EventKey| {
                event.name() == wish.event || event.to_string() == wish.event
            };
            for event in round.events().iter().map(|(event, _)| event).filter(fits) {
                self.found.insert(at);
                add(Measure { event: event.clone(), metric: wish.metric }, wish.bins);
            }
        }
        if self.is_automatic {
            self.note_heaviest(round);
            self.heaviest.iter().for_each(|measure| add(measure.clone(), BINS));
        }
        selected
    }

    fn note_heaviest(&mut self, round: &Round) {
        let mut events: Vec<_> = round.events().iter().collect();
        events.sort_by_key(|(_, statistics)| std::cmp::Reverse(statistics.time_ns.sum()));
        for (event, _) in events.into_iter().take(HEAVIEST) {
            let measure = Measure { event: event.clone(), metric: Metric::TimeNs };
            if self.heaviest.len() < AUTOMATIC_MAX && !self.heaviest.contains(&measure) {
                self.heaviest.push(measure);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_profile::{Counters, EventKey, RankProfile};

    use super::*;

    fn round(times: &[(&str, u64)]) -> Round {
        let mut profile = RankProfile::new(0, 1);
        for &(name, time_ns) in times {
            let counters = Counters { count: 1, time_ns, bytes: 0 };
            profile.events.insert(EventKey::Region(name.into()), counters);
        }
        let mut round = Round::new(1);
        round.add(&profile).expect("a rank");
        round
    }

    fn names(selected: &Selected) -> Vec<String> {
        selected.measures.keys().map(|measure| measure.event.to_string()).collect()
    }

    #[test]
    fn a_wish_names_an_event_a_metric_and_bins() {
        let wish =
            |text| HistogramWish::read(text).map(|wish| (wish.event, wish.metric, wish.bins));
        let is = |event: &str, metric, bins| Ok((event.to_owned(), metric, bins));
        assert_eq!(wish("MPI_Send"), is("MPI_Send", Metric::TimeNs, BINS));
        assert_eq!(wish("MPI_Send:bytes,bins=7"), is("MPI_Send", Metric::Bytes, 7));
        assert_eq!(wish("io: a, b:calls"), is("io: a, b", Metric::Count, BINS));
        assert_eq!(wish("a:b"), is("a:b", Metric::TimeNs, BINS), "a colon in a region's name");
        for wrong in ["", ":bytes", "a,bins=0", "a,bins=1025", "a,bins=x"] {
            assert!(wish(wrong).is_err(), "{wrong}");
        }
        for wrong in ["MPI_Send:foo", "MPI_Bcast (5-8):time", "MPI_Send:foo,bins=4"] {
            let error = wish(wrong).expect_err(wrong);
            assert!(error.contains("no metric '") && error.contains("time_ns"), "{error}");
        }
    }

    #[test]
    fn an_event_that_was_named_and_never_appears_is_known() {
        let wish = |text| HistogramWish::read(text).expect("a wish");
        let mut selection = Selection::automatic(vec![wish("a"), wish("bogus:bytes")]);
        assert_eq!(selection.never_found(), ["a", "bogus"]);
        selection.select(&round(&[("a", 1)]));
        selection.select(&round(&[("b", 1)]));
        assert_eq!(selection.never_found(), ["bogus"]);
    }

    #[test]
    fn the_heaviest_events_are_taken_and_stay() {
        let mut selection = Selection::automatic(Vec::new());
        let first = round(&[("a", 1), ("b", 9), ("c", 8), ("d", 7), ("e", 6)]);
        assert_eq!(names(&selection.select(&first)), ["b", "c", "d", "e"]);
        let second = round(&[("a", 99), ("b", 9), ("c", 8), ("d", 7), ("e", 6)]);
        assert_eq!(names(&selection.select(&second)), ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn a_heavy_event_that_was_named_keeps_its_bins() {
        let wish = HistogramWish::read("a,bins=7").expect("a wish");
        let selected = Selection::automatic(vec![wish]).select(&round(&[("a", 9), ("b", 1)]));
        assert_eq!(selected.measures.into_values().collect::<Vec<_>>(), [7, BINS]);
    }

    #[test]
    fn too_many_histograms_are_left_out_and_counted() {
        let names: Vec<String> = (0..HISTOGRAMS_MAX + 3).map(|at| format!("r{at}")).collect();
        let times: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        let wishes = names.iter().map(|name| HistogramWish::read(name).expect("a wish"));
        let selected = Selection::of(wishes.collect()).select(&round(&times));
        assert_eq!((selected.measures.len(), selected.left_out), (HISTOGRAMS_MAX, 3));
    }
}
