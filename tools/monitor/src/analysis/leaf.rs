//! A leaf's side of the analysis: profiles of the last moments, and the answers from them.

use std::collections::{BTreeMap, VecDeque};

use sapwood::{Tag, Values, ValuesRef, Wave};
use sapwood_profile::{
    Classification, Counts, Deviations, Extremes, HistogramSketches, Medians, Part, ProfileError,
    RankProfile, RankValues, Scheme,
};

use super::question::{Head, Question};
use super::scheme;

/// The moments that a leaf keeps. A front-end begins no further one before the first of them is
/// over.
pub const MOMENTS_MAX: usize = 4;

/// The profiles of a leaf's ranks at the last moments.
#[derive(Debug, Default)]
pub struct Moments {
    /// The oldest first.
    kept: VecDeque<(u64, Vec<RankProfile>)>,
    schemes: BTreeMap<String, Scheme>,
}

impl Moments {
    /// The answer to a question, and the wave that it belongs to; nothing if the tag is another's.
    /// `read` reads the ranks, which is done once for each moment. A moment that is kept no more
    /// gives an answer that covers no rank. `seed` is the leaf's own.
    ///
    /// # Errors
    /// [`ProfileError`] when the values are no question.
    pub fn answer(
        &mut self,
        (tag, values): (Tag, ValuesRef<'_>),
        seed: u64,
        read: impl FnOnce(Head) -> Vec<RankProfile>,
    ) -> Result<Option<(Wave, Values)>, ProfileError> {
        let Some((head, wave, question)) = Question::decode(tag, values)? else { return Ok(None) };
        let is_newer = self.kept.back().is_none_or(|(last, _)| *last < head.round);
        if question.is_first() && is_newer {
            if self.kept.len() == MOMENTS_MAX {
                self.kept.pop_front();
            }
            self.kept.push_back((head.round, light(read(head))));
        }
        let kept = self.kept.iter().find(|(round, _)| *round == head.round);
        let profiles = kept.map_or(&[][..], |(_, profiles)| profiles);
        let answer = match question {
            Question::Extremes(measures) => Extremes::of(profiles, &measures).encode(),
            Question::Sketches(measures) => HistogramSketches::of(profiles, &measures).encode(),
            Question::Classes(name) => {
                let scheme = scheme_of(&mut self.schemes, &name);
                scheme
                    .map_or_else(Classification::default, |scheme| {
                        Classification::of(profiles, scheme)
                    })
                    .encode()
            }
            Question::Medians(measures) => Medians::of(profiles, &measures, seed).encode(),
            Question::RankValues => RankValues::of(profiles).encode(),
            Question::Bins(name, limits) if name.is_empty() => {
                Counts::of(profiles, &limits, |_| 0).encode()
            }
            Question::Bins(name, limits) => {
                let scheme = scheme_of(&mut self.schemes, &name);
                let class =
                    |profile: &RankProfile| scheme.map_or(0, |scheme| scheme.class(profile));
                Counts::of(profiles, &limits, class).encode()
            }
            Question::Deviations(medians, most) => {
                Deviations::of(profiles, &medians, most as usize, seed).encode()
            }
        };
        Ok(Some((wave, answer)))
    }
}

/// Profiles without what is not counted here.
fn light(mut profiles: Vec<RankProfile>) -> Vec<RankProfile> {
    profiles.iter_mut().for_each(|profile| profile.activities.clear());
    profiles
}

/// The scheme of a name, which the front-end has checked.
fn scheme_of<'a>(schemes: &'a mut BTreeMap<String, Scheme>, name: &str) -> Option<&'a Scheme> {
    if !schemes.contains_key(name) && schemes.len() < scheme::SCHEMES_MAX {
        schemes.insert(name.to_owned(), scheme::read(name).ok()?);
    }
    schemes.get(name)
}
