//! Which wave answers which question.
//!
//! A question is a packet of the front-end that is to be answered; its number is that of the packet
//! in its stream. Back-ends also send what they have not been asked for, each as often as it likes,
//! so that a count of waves does not say what a wave answers. The numbers of waves do: those below
//! [`ANSWERS_BEGIN`] are for back-ends that have answered no question yet, and from there on each
//! question has a stretch of its own. The first wave of a stretch is the answer, the others are for
//! what a back-end sends unasked between this answer and its next.
//!
//! ```text
//!     63   62  61                  30  29                       0
//!     | 0 | 1 | number of the question | 0: answer; else unasked |
//! ```

use crate::Wave;

/// The first wave that answers a question. Waves that an application numbers itself, for example
/// by the time in nanoseconds, lie before it.
pub const ANSWERS_BEGIN: Wave = 1 << 62;

/// Questions of one stream that can have answers.
pub const QUESTIONS_MAX: u64 = 1 << 32;

/// The logarithm of the length of a question's stretch of waves.
const STRETCH_BITS: u32 = 30;

/// The wave that answers the question of this number; none from [`QUESTIONS_MAX`] on.
#[must_use]
pub const fn answer_wave(question: u64) -> Option<Wave> {
    if question < QUESTIONS_MAX { Some(ANSWERS_BEGIN + (question << STRETCH_BITS)) } else { None }
}

/// The number of the question that this wave answers; none for what was sent unasked.
#[must_use]
pub const fn question_of(wave: Wave) -> Option<u64> {
    let place = wave.wrapping_sub(ANSWERS_BEGIN);
    let is_answer = place < ANSWERS_BEGIN && place.trailing_zeros() >= STRETCH_BITS;
    if is_answer { Some(place >> STRETCH_BITS) } else { None }
}

/// The number of the question in whose stretch this wave is: which it answers, or behind whose
/// answer a back-end has sent it unasked.
#[must_use]
pub const fn stretch_of(wave: Wave) -> Option<u64> {
    let place = wave.wrapping_sub(ANSWERS_BEGIN);
    if place < ANSWERS_BEGIN { Some(place >> STRETCH_BITS) } else { None }
}

/// The first wave from this one on that answers no question.
#[must_use]
pub const fn unasked_wave(from: Wave) -> Wave {
    if question_of(from).is_some() { from + 1 } else { from }
}

/// How many waves lie between two, counted as few: the unused waves of a stretch do not count.
#[must_use]
pub const fn waves_between(from: Wave, to: Wave) -> u64 {
    if from < ANSWERS_BEGIN {
        return to.saturating_sub(from);
    }
    let (first, last) = (from >> STRETCH_BITS, to >> STRETCH_BITS);
    if first >= last { to.saturating_sub(from) } else { last - first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_what_is_sent_unasked_have_different_waves() {
        for question in [0, 1, 77, QUESTIONS_MAX - 1] {
            let wave = answer_wave(question).expect("it is below the limit");
            assert_eq!(question_of(wave), Some(question));
            assert_eq!(question_of(wave + 1), None);
            assert_eq!((stretch_of(wave), stretch_of(wave + 1)), (Some(question), Some(question)));
            assert_eq!(question_of(wave - 1), None);
            assert_eq!((unasked_wave(wave), unasked_wave(wave + 1)), (wave + 1, wave + 1));
        }
        assert_eq!(answer_wave(QUESTIONS_MAX), None);
        for wave in [0, 1, 1 << 61, u64::MAX, u64::MAX - 1, 3 << 62] {
            assert_eq!((question_of(wave), stretch_of(wave)), (None, None));
            assert_eq!(unasked_wave(wave), wave);
        }
    }

    #[test]
    fn stretches_do_not_count_as_long_as_they_are() {
        let wave = |question| answer_wave(question).expect("it is below the limit");
        assert_eq!(waves_between(3, 10), 7);
        assert_eq!(waves_between(10, 3), 0);
        assert_eq!(waves_between(wave(4) + 1, wave(4) + 9), 8);
        assert_eq!(waves_between(wave(4) + 1, wave(9) + 1), 5);
        assert_eq!(waves_between(wave(9), wave(4)), 0);
        assert!(waves_between(200, wave(0)) > 1 << 60, "what was sent before must be told of");
    }
}
