//! What a leaf says of one rank before `MPI_Init`, as one record: 25 bytes of numbers, the lowest
//! byte first, the program's name, a byte 0 and where it sleeps.

use sapwood_profile::Condition;

use super::StartedRank;

/// The end of the program's name: neither it nor a place has a byte 0.
const NAME_END: u8 = 0;

impl StartedRank {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut record = Vec::new();
        record.extend(self.rank.to_le_bytes());
        record.extend(self.process.to_le_bytes());
        record.extend(self.age_ns.to_le_bytes());
        record.extend(self.inside_ns.to_le_bytes());
        record.push(self.condition as u8);
        record.extend(self.program.bytes().filter(|&byte| byte != NAME_END));
        record.push(NAME_END);
        record.extend(self.place.bytes());
        record
    }

    /// None if these bytes are no such record.
    pub(crate) fn decode(record: &[u8]) -> Option<Self> {
        let (rank, record) = record.split_first_chunk()?;
        let (process, record) = record.split_first_chunk()?;
        let (age_ns, record) = record.split_first_chunk()?;
        let (inside_ns, record) = record.split_first_chunk()?;
        let (&condition, texts) = record.split_first()?;
        let end = texts.iter().position(|&byte| byte == NAME_END)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(Self {
            rank: u32::from_le_bytes(*rank),
            process: u32::from_le_bytes(*process),
            age_ns: u64::from_le_bytes(*age_ns),
            condition: Condition::from_code(condition)?,
            program: text(&texts[..end]),
            place: text(&texts[end + 1..]),
            inside_ns: u64::from_le_bytes(*inside_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> StartedRank {
        StartedRank {
            rank: 5,
            process: 77,
            age_ns: 12,
            condition: Condition::Sleeping,
            program: "solver".into(),
            place: "nanosleep".into(),
            inside_ns: 9,
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for one in [one(), StartedRank::default()] {
            assert_eq!(StartedRank::decode(&one.encode()), Some(one));
        }
    }

    #[test]
    fn what_is_cut_or_has_another_condition_is_no_record() {
        let whole = one().encode();
        for length in 0..32 {
            assert_eq!(StartedRank::decode(&whole[..length]), None, "{length} bytes");
        }
        let mut wrong = whole;
        wrong[24] = 99;
        assert_eq!(StartedRank::decode(&wrong), None);
    }
}
