//! Messages as bytes and back.

use alloc::string::ToString;
use alloc::vec::Vec;

use postcard::ser_flavors::Size;

use super::Message;
use super::bounds::bound_numbers;
use crate::error::GroupError;
use crate::limits::MESSAGE_BYTES_MAX;

/// A message as bytes.
///
/// # Errors
/// [`GroupError::Message`] beyond [`MESSAGE_BYTES_MAX`].
pub fn encode(message: &Message) -> Result<Vec<u8>, GroupError> {
    let bytes = postcard::to_allocvec(message).map_err(wrong)?;
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(GroupError::Message("longer than a message may be".to_string()));
    }
    Ok(bytes)
}

/// How many bytes [`encode`] gives.
#[must_use]
pub fn encoded_bytes(message: &Message) -> usize {
    postcard::serialize_with_flavor(message, Size::default()).unwrap_or(usize::MAX)
}

/// A message from bytes.
///
/// # Errors
/// [`GroupError::Message`] for what [`encode`] does not give.
pub fn decode(bytes: &[u8]) -> Result<Message, GroupError> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(GroupError::Message("longer than a message may be".to_string()));
    }
    let (mut message, rest) = postcard::take_from_bytes(bytes).map_err(wrong)?;
    if !rest.is_empty() {
        return Err(GroupError::Message("bytes behind the message".to_string()));
    }
    bound_numbers(&mut message)?;
    Ok(message)
}

fn wrong(error: postcard::Error) -> GroupError {
    GroupError::Message(error.to_string())
}
