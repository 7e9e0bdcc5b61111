//! `hosts`: the filter that makes one table of what hosts and tables have sent.
//!
//! Parameter: k, how many of the worst hosts are named. A host sends `%alf`, one number for each
//! metric; a table's values are in `table`. It keeps nothing from wave to wave.

use sapwood::{Emitter, Filter, FilterError, Packet, Registry, ValuesRef, WaveRef};

use super::table::{Table, WORST_MAX};

/// The filter's name.
pub(crate) const HOSTS: &str = "hosts";

/// Adds the filter to what a process can make.
pub fn register(registry: Registry) -> Registry {
    registry.with(HOSTS, make)
}

struct Hosts {
    k: u32,
}

fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    let wrong = || FilterError::Parameters { name: HOSTS, takes: "k, from 1 to 100, as %ud" };
    let k = parameters.scalar::<u32>(0).map_err(|_| wrong())?;
    if parameters.len() != 1 || !(1..=WORST_MAX).contains(&k) {
        return Err(wrong());
    }
    Ok(Box::new(Hosts { k }))
}

impl Filter for Hosts {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, ..] = wave.packets else { return Ok(()) };
        let mut table = Table::new(self.k);
        for packet in wave.packets {
            let rank = packet.contributors.first();
            take(&mut table, packet.values(), rank).map_err(failed)?;
        }
        out.emit(first.header.tag, table.encode());
        Ok(())
    }
}

/// Takes in the values of one packet: a host's, or a table. Also for parts that come late.
fn take(table: &mut Table, values: ValuesRef<'_>, rank: Option<u32>) -> Result<(), String> {
    if values.len() == 1 {
        let rank = rank.ok_or("a packet has no contributors; use it on the way up")?;
        let numbers = values.array::<f64>(0).map_err(|error| error.to_string())?;
        return table.add(rank, numbers);
    }
    table.merge(&Table::decode(values)?)
}

/// The table of an answer, or of a late part of it.
///
/// # Errors
/// What is wrong with it, if no process of ours has made it.
pub(crate) fn table_of(packet: &Packet, k: u32) -> Result<Table, String> {
    let mut table = Table::new(k);
    take(&mut table, packet.values(), packet.contributors.as_ref().first())?;
    Ok(table)
}

#[cold]
fn failed(reason: String) -> FilterError {
    FilterError::Failed(format!("filter '{HOSTS}': {reason}"))
}

#[cfg(test)]
mod tests {
    use sapwood::{RankSet, Values};

    use super::*;
    use crate::metric::METRICS;

    fn sent(rank: u32, values: impl sapwood::IntoValues) -> Packet {
        let mut packet = Packet::new(1, 100, values);
        packet.contributors = RankSet::range(rank, rank);
        packet
    }

    fn reduced(packets: &[Packet]) -> Result<Packet, FilterError> {
        let mut filter = make(Values::new().scalar(2_u32).as_ref())?;
        let packets: Vec<_> = packets.iter().map(Packet::as_ref).collect();
        let mut out = Emitter::new();
        let contributors = RankSet::range(0, 9);
        let wave = WaveRef {
            stream: 1,
            wave: 0,
            packets: &packets,
            contributors: contributors.as_ref(),
            rank: 10,
            is_root: false,
            children: packets.len() as u32,
            back_ends: 10,
        };
        filter.transform(&wave, &mut out)?;
        let (emission, values) = out.emissions().next().expect("a packet");
        let mut body = Values::new();
        for at in 0..values.len() {
            let (directive, bytes) = values.encoded(at).expect("a value");
            body.push_encoded(directive, bytes);
        }
        Ok(Packet::new(1, emission.tag, body))
    }

    #[test]
    fn hosts_and_tables_may_come_in_one_wave() {
        let below = reduced(&[sent(0, vec![1.0; METRICS]), sent(1, vec![5.0; METRICS])]);
        let below = below.expect("two hosts");
        let above = reduced(&[below, sent(2, vec![3.0; METRICS])]).expect("a table and a host");
        let table = table_of(&above, 2).expect("a table");
        let first = &table.columns()[0];
        assert_eq!((first.moments.count, first.moments.mean), (3, 3.0));
        assert_eq!(first.worst, [(5.0, 1), (3.0, 2)]);
        assert_eq!((first.moments.min_rank, first.moments.max_rank), (0, 1));
    }

    #[test]
    fn other_packets_and_other_parameters_are_refused() {
        let error = reduced(&[sent(0, vec![1.0; 2])]).expect_err("two numbers");
        assert_eq!(
            error.to_string(),
            format!("filter 'hosts': a host has sent 2 metrics for {METRICS}")
        );
        assert!(reduced(&[sent(0, 7_i32)]).is_err());
        for wrong in [Values::new(), Values::new().scalar(0_u32), Values::new().scalar(101_u32)] {
            assert!(make(wrong.as_ref()).is_err());
        }
    }
}
