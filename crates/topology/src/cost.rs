//! What a wave through a tree costs, predicted by LogGP.
//!
//! The model is that of A. Alexandrov, M. F. Ionescu, K. E. Schauser and C. Scheiman, "LogGP:
//! Incorporating Long Messages into the LogP Model", SPAA 1995. A message of `b` bytes costs its
//! sender the overhead `o`; its last byte leaves `(b - 1) G` later; it travels for the latency
//! `L`; its receiver pays `o` again. Two messages that one process sends, or receives, start at
//! least `max(o, g + (b - 1) G)` apart, because overheads overlap with bytes on their way.
//!
//! It predicts shapes, not machines: processes of one host that share processors, filters that
//! take long and links of different speed are not in it. Put the cost of a filter into `o`.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use crate::error::Error;
use crate::hosts::Hosts;
use crate::shape::Shape;
use crate::tree::Topology;

/// The parameters of LogGP, all in microseconds.
///
/// ```
/// use sapwood_topology::{Hosts, LogGp, Topology};
///
/// let model = LogGp::new(10.0, 2.0, 1.0, 0.001)?;
/// let flat = Topology::from_shape(&"3".parse()?, &Hosts::local());
/// // The third send starts after two overheads; then overhead, latency, overhead.
/// assert_eq!(model.broadcast_us(&flat, 1), 2.0 * 2.0 + 2.0 + 10.0 + 2.0);
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogGp {
    latency_us: f64,
    overhead_us: f64,
    gap_us: f64,
    gap_per_byte_us: f64,
}

/// What the model says about one tree.
///
/// ```
/// use sapwood_topology::{LogGp, compare};
///
/// let shapes = ["256".parse()?, "16^2".parse()?, "4^4".parse()?];
/// let predictions = compare(&LogGp::LOCAL_SOCKETS, &shapes, 64);
/// assert_eq!(predictions[0].shape, "256");
/// assert!(predictions[1].round_trip_us < predictions[0].round_trip_us);
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The shape as text.
    pub shape: alloc::string::String,
    /// Back-ends of the tree.
    pub back_ends: u32,
    /// Communication processes: what the shape costs beside time.
    pub communication_processes: u32,
    /// Levels below the front-end.
    pub depth: u32,
    /// See [`LogGp::broadcast_us`].
    pub broadcast_us: f64,
    /// See [`LogGp::reduction_us`].
    pub reduction_us: f64,
    /// See [`LogGp::round_trip_us`].
    pub round_trip_us: f64,
    /// See [`LogGp::waves_per_s`].
    pub waves_per_s: f64,
}

/// Predicts every shape for packets of `bytes` bytes, in the given order.
pub fn compare(model: &LogGp, shapes: &[Shape], bytes: u64) -> Vec<Prediction> {
    shapes
        .iter()
        .map(|shape| {
            let topology = Topology::from_shape(shape, &Hosts::local());
            let mut prediction = model.predict(&topology, bytes);
            prediction.shape = shape.to_string();
            prediction
        })
        .collect()
}

impl LogGp {
    /// A starting point for processes of one machine that talk over local sockets, each pinned:
    /// small messages take about 5 us from program to program, long ones run at about 2 GB/s.
    /// Measure your own machine before you trust a time; the order of shapes is less sensitive.
    pub const LOCAL_SOCKETS: Self =
        Self { latency_us: 2.0, overhead_us: 1.5, gap_us: 1.5, gap_per_byte_us: 0.000_5 };

    /// A starting point for encrypted links between hosts of one network, where nothing was
    /// measured: a small message takes some 50 us, long ones run at about 1 GB/s.
    pub const NETWORK: Self =
        Self { latency_us: 30.0, overhead_us: 10.0, gap_us: 10.0, gap_per_byte_us: 0.001 };

    /// The same for processes that are started by a log-in, each one a message: the client takes
    /// some 10 ms of its own, and the process goes on 150 ms later.
    pub const LOG_IN: Self = Self {
        latency_us: 150_000.0,
        overhead_us: 10_000.0,
        gap_us: 10_000.0,
        gap_per_byte_us: 0.0,
    };

    /// A model from its four parameters: latency `L`, overhead `o` of one send or receive, gap
    /// `g` between messages, gap `G` between the bytes of a long message.
    ///
    /// # Errors
    ///
    /// [`Error::CostParameter`] for a time that is negative or not finite.
    pub fn new(
        latency_us: f64,
        overhead_us: f64,
        gap_us: f64,
        gap_per_byte_us: f64,
    ) -> Result<Self, Error> {
        for (name, value) in [
            ("latency_us", latency_us),
            ("overhead_us", overhead_us),
            ("gap_us", gap_us),
            ("gap_per_byte_us", gap_per_byte_us),
        ] {
            if !value.is_finite() || value < 0.0 {
                return Err(Error::CostParameter { name, value });
            }
        }
        Ok(Self { latency_us, overhead_us, gap_us, gap_per_byte_us })
    }

    /// Latency `L` in microseconds.
    pub fn latency_us(&self) -> f64 {
        self.latency_us
    }

    /// Overhead `o` of one send or receive in microseconds.
    pub fn overhead_us(&self) -> f64 {
        self.overhead_us
    }

    /// Gap `g` between two messages in microseconds.
    pub fn gap_us(&self) -> f64 {
        self.gap_us
    }

    /// Gap `G` between two bytes of one message in microseconds.
    pub fn gap_per_byte_us(&self) -> f64 {
        self.gap_per_byte_us
    }

    /// All predictions for one tree; its shape is written as `nodes n, depth d`.
    pub fn predict(&self, topology: &Topology, bytes: u64) -> Prediction {
        Prediction {
            shape: alloc::format!("nodes {}, depth {}", topology.node_count(), topology.depth()),
            back_ends: topology.back_end_count(),
            communication_processes: topology.node_count() - topology.back_end_count() - 1,
            depth: topology.depth(),
            broadcast_us: self.broadcast_us(topology, bytes),
            reduction_us: self.reduction_us(topology, bytes),
            round_trip_us: self.round_trip_us(topology, bytes, bytes),
            waves_per_s: self.waves_per_s(topology, bytes),
        }
    }

    /// Microseconds until the last back-end has a packet of `bytes` bytes that the front-end
    /// starts to send at 0. A node sends to its children from left to right.
    pub fn broadcast_us(&self, topology: &Topology, bytes: u64) -> f64 {
        let times = self.broadcast_times(topology, bytes);
        topology.back_ends().map(|rank| times[rank as usize].arrival_us).fold(0.0, f64::max)
    }

    /// Microseconds until the front-end has the reduced packet, when all back-ends start to send
    /// at 0 and every node sends `bytes` bytes once it has those of all its children.
    pub fn reduction_us(&self, topology: &Topology, bytes: u64) -> f64 {
        self.reduce_us(topology, bytes, &vec![Times::default(); topology.node_count() as usize])
    }

    /// Microseconds of a broadcast of `bytes_down` that each back-end answers at once with
    /// `bytes_up`, reduced on the way up. It is at most the sum of both alone, as the first
    /// answers rise while the last back-ends still wait. A node takes no answer before it has
    /// sent to all its children: it has one processor.
    pub fn round_trip_us(&self, topology: &Topology, bytes_down: u64, bytes_up: u64) -> f64 {
        self.reduce_us(topology, bytes_up, &self.broadcast_times(topology, bytes_down))
    }

    /// Waves of reductions per second when the back-ends never wait: the rate of the busiest
    /// node. Per wave a node pays `o` for every packet that it receives or sends, and its link
    /// is occupied by all that it receives. Infinite if nothing costs anything.
    pub fn waves_per_s(&self, topology: &Topology, bytes: u64) -> f64 {
        let busiest_us = topology
            .nodes()
            .map(|node| {
                let receives = node.children().len() as f64;
                let sends = if node.parent().is_some() { 1.0 } else { 0.0 };
                let processor_us = (receives + sends) * self.overhead_us;
                let link_us = receives.max(sends) * (self.gap_us + self.bytes_us(bytes));
                processor_us.max(link_us)
            })
            .fold(0.0, f64::max);
        1.0e6 / busiest_us
    }

    /// From the first byte to the last.
    fn bytes_us(&self, bytes: u64) -> f64 {
        bytes.saturating_sub(1) as f64 * self.gap_per_byte_us
    }

    /// Microseconds from the start of a send until the receiver has the packet, without other
    /// traffic.
    pub fn message_us(&self, bytes: u64) -> f64 {
        self.flight_us(bytes) + self.overhead_us
    }

    /// Least distance between the starts of two sends, or two receives, of one node.
    pub(crate) fn interval_us(&self, bytes: u64) -> f64 {
        self.overhead_us.max(self.gap_us + self.bytes_us(bytes))
    }

    /// From the start of a send until the receiver may start to receive.
    fn flight_us(&self, bytes: u64) -> f64 {
        self.overhead_us + self.bytes_us(bytes) + self.latency_us
    }

    /// The times of a broadcast at every node, by rank.
    fn broadcast_times(&self, topology: &Topology, bytes: u64) -> Vec<Times> {
        let mut times = vec![Times::default(); topology.node_count() as usize];
        for rank in topology.breadth_first() {
            let mut start_us = times[rank as usize].arrival_us;
            for child in topology.children(rank) {
                let arrival_us = start_us + self.message_us(bytes);
                times[*child as usize].arrival_us = arrival_us;
                times[rank as usize].free_us = start_us + self.overhead_us;
                start_us += self.interval_us(bytes);
            }
        }
        times
    }

    /// When the front-end is done with a reduction, after a broadcast with these times: a
    /// back-end sends when the broadcast has arrived, the others when they have all answers.
    fn reduce_us(&self, topology: &Topology, bytes: u64, times: &[Times]) -> f64 {
        let mut ready_us: Vec<f64> = times.iter().map(|times| times.arrival_us).collect();
        let mut incoming = Vec::new();
        for rank in topology.breadth_first().into_iter().rev() {
            incoming.clear();
            let children = topology.children(rank).iter();
            incoming.extend(children.map(|c| ready_us[*c as usize] + self.flight_us(bytes)));
            incoming.sort_unstable_by(f64::total_cmp);
            // Packets are taken in the order of their arrival, one interval apart at least.
            let mut next_us = times[rank as usize].free_us;
            for arrival_us in &incoming {
                let start_us = arrival_us.max(next_us);
                ready_us[rank as usize] = start_us + self.overhead_us;
                next_us = start_us + self.interval_us(bytes);
            }
        }
        ready_us[topology.root().rank() as usize]
    }
}

/// What a broadcast means for one node.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    /// When the node has the packet.
    arrival_us: f64,
    /// When its processor has sent it to the last child.
    free_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(spec: &str) -> Topology {
        Topology::from_shape(&spec.parse().unwrap(), &Hosts::local())
    }

    fn model() -> LogGp {
        LogGp::new(10.0, 2.0, 3.0, 0.5).unwrap()
    }

    #[test]
    fn one_link_costs_overhead_bytes_latency_overhead() {
        let one = tree("1");
        assert_eq!(model().broadcast_us(&one, 5), 2.0 + 4.0 * 0.5 + 10.0 + 2.0);
        assert_eq!(model().reduction_us(&one, 5), model().broadcast_us(&one, 5));
        assert_eq!(model().round_trip_us(&one, 5, 5), 32.0);
    }

    #[test]
    fn a_chain_costs_its_links_one_after_another() {
        assert_eq!(model().broadcast_us(&tree("1^3"), 1), 3.0 * 14.0);
        assert_eq!(model().reduction_us(&tree("1^3"), 1), 3.0 * 14.0);
    }

    #[test]
    fn the_gap_spaces_the_sends_of_one_node() {
        // Gap 3 is above overhead 2; the fourth send starts at 9.
        assert_eq!(model().broadcast_us(&tree("4"), 1), 9.0 + 14.0);
        assert_eq!(model().reduction_us(&tree("4"), 1), 9.0 + 14.0);
    }

    #[test]
    fn answers_overlap_with_the_broadcast() {
        let flat = tree("4");
        // Answers arrive as spaced as the questions left, so the wait is paid once.
        assert_eq!(model().round_trip_us(&flat, 1, 1), 9.0 + 14.0 + 14.0);
    }

    #[test]
    fn a_wide_front_end_pays_every_send_before_every_receive() {
        let model = LogGp::new(1.0, 1.0, 0.0, 0.0).unwrap();
        assert_eq!(model.round_trip_us(&tree("64"), 1, 1), 64.0 + 64.0);
    }

    #[test]
    fn a_tree_beats_a_flat_front_end_where_there_are_many() {
        let few = [Shape::flat(4).unwrap(), Shape::balanced(2, 2).unwrap()];
        let many = [Shape::flat(4096).unwrap(), Shape::balanced(16, 3).unwrap()];
        let few = compare(&model(), &few, 64);
        let many = compare(&model(), &many, 64);
        assert!(few[0].round_trip_us < few[1].round_trip_us);
        assert!(many[1].round_trip_us < many[0].round_trip_us);
        assert!(many[1].waves_per_s > 100.0 * many[0].waves_per_s);
    }

    #[test]
    fn the_binomial_tree_is_a_good_broadcast_tree_where_latency_is_small() {
        let model = LogGp::new(0.0, 1.0, 1.0, 0.0).unwrap();
        let shapes = [Shape::knomial(2, 64).unwrap(), Shape::flat(63).unwrap()];
        let predictions = compare(&model, &shapes, 1);
        assert!(predictions[0].broadcast_us < predictions[1].broadcast_us / 4.0);
    }

    #[test]
    fn the_busiest_node_sets_the_rate_of_waves() {
        // A communication process of 4 children: 5 overheads of 2 us against 4 gaps of 3 us.
        assert_eq!(model().waves_per_s(&tree("2x4"), 1), 1.0e6 / 12.0);
    }

    #[test]
    fn parameters_that_are_no_times_are_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(LogGp::new(1.0, bad, 1.0, 1.0).is_err());
        }
        assert!(model().broadcast_us(&tree("1"), u64::MAX).is_finite());
    }

    #[test]
    fn a_front_end_alone_costs_nothing() {
        let alone = Topology::from_file_text("host:0 ;").unwrap();
        assert_eq!(model().round_trip_us(&alone, 64, 64), 0.0);
    }
}
