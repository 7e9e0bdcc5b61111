//! What the front-ends of the tests ask of the back-ends: one tag each.

use sapwood::{FIRST_TAG, Tag};

/// Send back what came.
pub const ECHO: Tag = FIRST_TAG;
/// Send the rank as `%ld`.
pub const RANK: Tag = FIRST_TAG + 1;
/// `%ud` a type of number: send rank + 1 as a scalar and an array of three of that type.
pub const TYPED: Tag = FIRST_TAG + 2;
/// Send "rank N".
pub const TEXT: Tag = FIRST_TAG + 3;
/// `%aud`: back-ends of these ranks end at once, without a word; the others send their rank.
pub const DIE: Tag = FIRST_TAG + 4;
/// `%aud %ud`: back-ends of these ranks sleep for this many milliseconds; then all send their rank.
pub const SLEEP: Tag = FIRST_TAG + 5;
/// `%ud %ud`: send this many packets of this many bytes each.
pub const FLOOD: Tag = FIRST_TAG + 6;
/// `%aud`: back-ends of these ranks loop for ever; the others send their rank.
pub const SPIN: Tag = FIRST_TAG + 7;
/// `%alf`: send the array with the rank added to every element.
pub const ADD_RANK: Tag = FIRST_TAG + 8;
/// `%aud`: back-ends of these ranks send nothing, the others their rank.
pub const HUSH: Tag = FIRST_TAG + 9;
/// Send the length of what came in bytes, as `%uld`.
pub const LENGTH: Tag = FIRST_TAG + 10;
/// `%aud`: back-ends of these ranks send a string, the others their rank.
pub const MIX: Tag = FIRST_TAG + 11;
/// `%ud` a stream that has been closed: try to send on it, and send what came of it.
pub const SEND_ON: Tag = FIRST_TAG + 12;
/// `%s` the name of a filter: send a sample for it, raw or as a sketch (`samples.rs`).
pub const SAMPLE: Tag = FIRST_TAG + 13;
/// `%aud`: back-ends of these ranks leave, the others send their rank.
pub const LEAVE: Tag = FIRST_TAG + 14;
/// `%aud`: back-ends of these ranks send -1 before and -2 behind their reply, unasked.
pub const UNASKED: Tag = FIRST_TAG + 15;
/// Reply twice, and send what came of the second time.
pub const TWICE: Tag = FIRST_TAG + 16;
