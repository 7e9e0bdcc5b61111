//! The leaves of the tree: how many there are, which MPI ranks each of them serves, and the tree
//! above them.
//!
//! Rank r of a host belongs to the host's leaf `(r / ranks per leaf) % leaves`, the rule of the
//! shim (`bindings/mpi/shim/handover.h`). Every host has the same number of leaves, N; leaf i of
//! the tree, which is back-end i, is number `i % N` on host `i / N`.

use sapwood::{Hosts, RankSet, Shape, Topology};
use sapwood_topology::HostName;

/// Which leaves there are and which ranks they serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaves {
    /// Ranks of the MPI program: what the command says, a guess where it says nothing, and then
    /// what the first rank says.
    pub(crate) world_size: u32,
    /// From 1.
    pub(crate) ranks_per_leaf: u32,
    /// All of the tree, from 1.
    pub(crate) count: u32,
    /// Those of each host.
    pub(crate) per_host: u32,
    shape: Shape,
    /// The hosts in order; none if all is on this one.
    hosts: Vec<HostName>,
    /// Whether the job starts the leaves on these, and not the tree.
    is_started_by_job: bool,
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes<'a> {
    pub(crate) ranks_per_leaf: Option<u32>,
    pub(crate) fan_out: u32,
    pub(crate) topology: Option<&'a Shape>,
    /// The number of ranks is a guess.
    pub(crate) is_guess: bool,
}

/// Ranks per leaf when nothing is said of them.
const RANKS_PER_LEAF: u32 = 4;
/// The same where each leaf costs a log-in.
const RANKS_PER_REMOTE_LEAF: u32 = 64;

impl Leaves {
    /// The leaves for a program.
    ///
    /// # Errors
    /// One line when the topology does not have the leaves that are asked for, or is too large.
    pub(crate) fn plan(world_size: u32, wishes: &Wishes<'_>) -> Result<Self, String> {
        let Some(shape) = wishes.topology else {
            let ranks_per_leaf = wishes.ranks_per_leaf.unwrap_or(RANKS_PER_LEAF).max(1);
            let count = world_size.div_ceil(ranks_per_leaf).max(1);
            let shape = shape_over(count, wishes.fan_out.max(2)).parse::<Shape>();
            let shape = shape.map_err(|error| error.to_string())?;
            return Ok(Self::here(world_size, ranks_per_leaf, count, shape));
        };
        let count = shape.back_end_count();
        check_starts(shape)?;
        let ranks_per_leaf = wishes.ranks_per_leaf.unwrap_or(world_size.div_ceil(count)).max(1);
        let needed = world_size.div_ceil(ranks_per_leaf);
        if wishes.ranks_per_leaf.is_some() && needed != count && !wishes.is_guess {
            return Err(format!(
                "topology '{shape}' has {count} back-ends, but {world_size} ranks with \
                 {ranks_per_leaf} per leaf need {needed}"
            ));
        }
        Ok(Self::here(world_size, ranks_per_leaf, count, shape.clone()))
    }

    /// Leaves of this host.
    fn here(world_size: u32, ranks_per_leaf: u32, count: u32, shape: Shape) -> Self {
        let hosts = Vec::new();
        Self {
            world_size,
            ranks_per_leaf,
            count,
            per_host: count,
            shape,
            hosts,
            is_started_by_job: false,
        }
    }

    /// The leaves of a tree inside the job, one of each rank that is the tool's.
    ///
    /// # Errors
    /// One line when there are too many.
    pub(crate) fn inside(count: u32, world_size: u32, fan_out: u32) -> Result<Self, String> {
        let shape = shape_over(count, fan_out.max(2)).parse::<Shape>();
        let shape = shape.map_err(|error| error.to_string())?;
        let ranks_per_leaf = world_size.div_ceil(count).max(1);
        Ok(Self::here(world_size, ranks_per_leaf, count, shape))
    }

    /// The same for a job on several hosts, of each of which this many ranks are the tool's, and
    /// `ranks_max` at most the program's.
    ///
    /// # Errors
    /// As [`Leaves::inside`].
    pub(crate) fn inside_on_hosts(
        hosts: &[HostName],
        per_host: u32,
        ranks_max: u32,
        world_size: u32,
        fan_out: u32,
    ) -> Result<Self, String> {
        let host_count = u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
        let inside = Self::inside(host_count.saturating_mul(per_host), world_size, fan_out)?;
        let ranks_per_leaf = ranks_max.div_ceil(per_host.max(1)).max(1);
        Ok(Self {
            per_host,
            ranks_per_leaf,
            hosts: hosts.to_vec(),
            is_started_by_job: true,
            ..inside
        })
    }

    /// The leaves for a program on several hosts, with these ranks on each at most, if that is
    /// known.
    ///
    /// # Errors
    /// One line when the topology does not have equally many leaves for each host.
    pub(crate) fn on_hosts(
        hosts: &[HostName],
        ranks_max: Option<u32>,
        world_size: u32,
        wishes: &Wishes<'_>,
    ) -> Result<Self, String> {
        let host_count = u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
        let ranks_per_leaf = wishes.ranks_per_leaf.unwrap_or(RANKS_PER_REMOTE_LEAF).max(1);
        let per_host = ranks_max.unwrap_or(1).div_ceil(ranks_per_leaf).max(1);
        let planned = Self {
            world_size,
            ranks_per_leaf,
            count: host_count.saturating_mul(per_host),
            per_host,
            shape: Shape::flat(1).map_err(|error| error.to_string())?,
            hosts: hosts.to_vec(),
            is_started_by_job: false,
        };
        let Some(shape) = wishes.topology else {
            let spec = shape_over(planned.count, wishes.fan_out.max(2));
            let shape = spec.parse::<Shape>().map_err(|error| error.to_string())?;
            return Ok(Self { shape, ..planned });
        };
        check_starts(shape)?;
        let count = shape.back_end_count();
        if count % host_count != 0 {
            return Err(format!(
                "topology '{shape}' has {count} back-ends, which {host_count} hosts cannot share; \
                 each host needs equally many"
            ));
        }
        let per_host = count / host_count;
        let ranks_per_leaf = ranks_max.unwrap_or(1).div_ceil(per_host).max(1);
        Ok(Self { count, per_host, ranks_per_leaf, shape: shape.clone(), ..planned })
    }

    /// The hosts, if there are several.
    pub(crate) fn hosts(&self) -> &[HostName] {
        &self.hosts
    }

    /// The host of a leaf.
    pub(crate) fn host(&self, leaf: u32) -> Option<&HostName> {
        self.hosts.get((leaf / self.per_host) as usize)
    }

    /// The same by its name; empty where none was named.
    pub(crate) fn host_name(&self, leaf: u32) -> String {
        self.host(leaf).map(ToString::to_string).unwrap_or_default()
    }

    /// The tree: on this host, or with each leaf on its own. The tree has no part in where leaves
    /// run that attach to it.
    ///
    /// # Errors
    /// One line when there are not as many hosts as the shape has back-ends.
    pub(crate) fn topology(&self) -> Result<Topology, String> {
        if self.hosts.is_empty() || self.is_started_by_job {
            return Ok(Topology::from_shape(&self.shape, &Hosts::local()));
        }
        let each = |host| std::iter::repeat_n(host, self.per_host as usize).cloned();
        let hosts = Hosts::new(self.hosts.iter().flat_map(each).collect());
        let hosts = hosts.map_err(|error| error.to_string())?;
        Topology::on_hosts(&self.shape, &hosts, None).map_err(|error| error.to_string())
    }

    /// The tree as it is written.
    pub(crate) fn spec(&self) -> String {
        self.shape.to_string()
    }

    /// The MPI ranks that some leaves of this host serve.
    pub(crate) fn mpi_ranks(&self, back_ends: &RankSet) -> RankSet {
        let leaf = |rank: u32| (rank / self.ranks_per_leaf) % self.count;
        (0..self.world_size).filter(|&rank| back_ends.contains(leaf(rank))).collect()
    }
}

fn check_starts(shape: &Shape) -> Result<(), String> {
    match shape.attach_per_leaf() {
        None => Ok(()),
        Some(_) => Err(format!(
            "topology '{shape}': its leaves are started by the tree, so that '@' in the topology \
             makes no sense; leave it out"
        )),
    }
}

/// A tree over this number of leaves whose processes have at most `fan_out` children, as even as
/// can be.
pub(crate) fn shape_over(leaves: u32, fan_out: u32) -> String {
    let mut widths = vec![leaves];
    while widths[0] > fan_out {
        widths.insert(0, widths[0].div_ceil(fan_out));
    }
    let mut spec = widths[0].to_string();
    for pair in widths.windows(2) {
        let (parents, children) = (pair[0], pair[1]);
        let (fewer, larger) = (children / parents, children % parents);
        spec.push(':');
        if larger > 0 {
            spec.push_str(&format!("{larger}x{},", fewer + 1));
        }
        spec.push_str(&format!("{}x{fewer}", parents - larger));
    }
    if widths.len() == 1 { spec } else { format!("g:{spec}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(world_size: u32, ranks_per_leaf: Option<u32>, spec: &str) -> Result<Leaves, String> {
        let topology: Option<Shape> = (!spec.is_empty()).then(|| spec.parse().expect("a topology"));
        let wishes =
            Wishes { ranks_per_leaf, fan_out: 8, topology: topology.as_ref(), is_guess: false };
        Leaves::plan(world_size, &wishes)
    }

    #[test]
    fn few_leaves_stand_below_the_front_end() {
        let leaves = plan(8, None, "").expect("a small tree");
        assert_eq!((leaves.count, leaves.ranks_per_leaf, leaves.spec().as_str()), (2, 4, "2"));
        assert_eq!(plan(1, None, "").expect("one rank").count, 1);
    }

    #[test]
    fn many_leaves_get_levels_of_even_fan_out() {
        for leaves in [9, 64, 65, 100, 513, 4096] {
            for fan_out in [2, 3, 8] {
                let shape: Shape = shape_over(leaves, fan_out).parse().expect("a tree");
                assert_eq!(shape.back_end_count(), leaves);
                let topology = Topology::from_shape(&shape, &Hosts::local());
                let widest = topology.nodes().map(|node| node.children().len()).max();
                assert!(widest <= Some(fan_out as usize), "{shape}: {widest:?}");
            }
        }
    }

    #[test]
    fn a_topology_decides_how_many_ranks_a_leaf_serves() {
        let leaves = plan(8, None, "1x1x2").expect("two leaves");
        assert_eq!((leaves.count, leaves.ranks_per_leaf), (2, 4));
        let leaves = plan(5, None, "2x2").expect("four leaves");
        assert_eq!((leaves.count, leaves.ranks_per_leaf), (4, 2));
        let error = plan(8, Some(4), "2x2").expect_err("two leaves are needed");
        assert!(error.contains("has 4 back-ends") && error.contains("need 2"), "{error}");
        assert!(plan(8, None, "2+4").is_err());
    }

    #[test]
    fn ranks_belong_to_leaves_as_the_shim_counts_them() {
        let leaves = plan(7, None, "2x2").expect("four leaves");
        let ranks =
            |back_ends: &str| leaves.mpi_ranks(&back_ends.parse().expect("a rank set")).to_string();
        assert_eq!(ranks("0"), "0-1");
        assert_eq!(ranks("1,3"), "2-3,6");
        assert_eq!(ranks("0-3"), "0-6");
    }

    #[test]
    fn leaves_that_the_job_starts_have_hosts_that_the_tree_does_not_reach() {
        let hosts: Hosts = "a,b,c".parse().expect("three hosts");
        let leaves = Leaves::inside_on_hosts(hosts.names(), 2, 5, 15, 8).expect("six leaves");
        assert_eq!((leaves.count, leaves.per_host, leaves.ranks_per_leaf), (6, 2, 3));
        assert_eq!([0, 1, 2, 5].map(|leaf| leaves.host_name(leaf)), ["a", "a", "b", "c"]);
        let topology = leaves.topology().expect("a tree of this host");
        assert_eq!(topology.back_end_count(), 6);
        assert!(topology.hosts().iter().all(|host| host.as_str() == "localhost"));
    }

    #[test]
    fn every_host_has_equally_many_leaves() {
        let hosts: Hosts = "a,b,c".parse().expect("three hosts");
        let wishes = Wishes { ranks_per_leaf: Some(2), fan_out: 8, ..Wishes::default() };
        let leaves = Leaves::on_hosts(hosts.names(), Some(4), 12, &wishes).expect("six leaves");
        assert_eq!((leaves.count, leaves.per_host), (6, 2));
        let topology = leaves.topology().expect("a tree over hosts");
        let host = |leaf| topology.node(leaf).expect("a leaf").host().to_string();
        assert_eq!([0, 1, 2, 5].map(host), ["a", "a", "b", "c"]);
        assert_eq!(leaves.host(3).map(ToString::to_string).as_deref(), Some("b"));
        let shape: Shape = "4".parse().expect("a topology");
        let wishes = Wishes { topology: Some(&shape), fan_out: 8, ..Wishes::default() };
        let error = Leaves::on_hosts(hosts.names(), None, 12, &wishes).expect_err("4 over 3");
        assert!(error.contains("4 back-ends, which 3 hosts cannot share"), "{error}");
    }
}
