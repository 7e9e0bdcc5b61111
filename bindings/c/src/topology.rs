//! Topologies, to be looked at without starting anything.

use std::ffi::{CString, c_char, c_int};

use sapwood::{Role, Topology};

use crate::error::{Failure, guard, sapwood_error_t, shield};
use crate::options;
use crate::text::{self, to_c};

/// What a process of the tree is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sapwood_role_t {
    /// The root.
    SAPWOOD_ROLE_FRONT_END = 0,
    /// A process between the root and the leaves.
    SAPWOOD_ROLE_COMMUNICATION = 1,
    /// A leaf.
    SAPWOOD_ROLE_BACK_END = 2,
}

/// The shape of a tree, with hosts and ranks. Plain memory: any thread may read it.
pub struct sapwood_topology_t {
    topology: Topology,
    /// Ranks from the root on, parents before their children.
    order: Vec<u32>,
    hosts: Vec<CString>,
    file_text: CString,
}

/// One process of a topology.
#[repr(C)]
pub struct sapwood_topology_node_t {
    /// Its rank.
    pub rank: u32,
    /// Its parent's rank; UINT32_MAX for the root.
    pub parent: u32,
    /// A sapwood_role_t.
    pub role: c_int,
    /// The index that tells it from other processes of its host.
    pub index: u32,
    /// How many children it has.
    pub child_count: u32,
    /// Its host, lent until the topology is freed.
    pub host: *const c_char,
}

/// Reads a topology: a shape such as "4x8", or the text of a file in MRNet's format; one of the two
/// is NULL. If `attach_per_leaf` is not 0, leaves are communication processes at which this many
/// back-ends may attach.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_topology_read(
    topology: *mut *mut sapwood_topology_t,
    shape: *const c_char,
    file_text: *const c_char,
    attach_per_leaf: u32,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            if topology.is_null() {
                return Err(Failure::usage("topology: no place to put the handle (NULL)"));
            }
            topology.write(std::ptr::null_mut());
            let shape = text::optional("shape", shape)?;
            let file_text = text::optional("topology file text", file_text)?;
            let read = options::topology(shape, file_text, None, attach_per_leaf)?;
            let order = read.breadth_first();
            let host = |&rank: &u32| to_c(read.node(rank).map_or("", |node| node.host().as_str()));
            let hosts = order.iter().map(host).collect();
            let file_text = to_c(read.to_file_text());
            let made = sapwood_topology_t { topology: read, order, hosts, file_text };
            topology.write(Box::into_raw(Box::new(made)));
            Ok(())
        })
    }
}

/// How many processes the topology has, back-ends that may attach included; 0 for NULL.
///
/// # Safety
/// `topology` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_topology_size(topology: *const sapwood_topology_t) -> usize {
    // SAFETY: as the caller says.
    unsafe { topology.as_ref() }.map_or(0, |topology| topology.order.len())
}

/// One process, by its index in breadth-first order, the root first.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_topology_node(
    topology: *const sapwood_topology_t,
    place: usize,
    node: *mut sapwood_topology_node_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let topology =
                topology.as_ref().ok_or_else(|| Failure::usage("topology: the handle is NULL"))?;
            let none = || Failure::usage(format!("topology: there is no place {place}"));
            let rank = *topology.order.get(place).ok_or_else(none)?;
            let found = topology.topology.node(rank).ok_or_else(none)?;
            if node.is_null() {
                return Err(Failure::usage("node: no place (NULL)"));
            }
            node.write(sapwood_topology_node_t {
                rank,
                parent: found.parent().unwrap_or(u32::MAX),
                role: role_of(found.role()) as c_int,
                index: found.index(),
                child_count: found.children().len() as u32,
                host: topology.hosts[place].as_ptr(),
            });
            Ok(())
        })
    }
}

/// The topology as the text of a file in MRNet's format, lent until the topology is freed; NULL for
/// NULL.
///
/// # Safety
/// `topology` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_topology_file_text(
    topology: *const sapwood_topology_t,
) -> *const c_char {
    // SAFETY: as the caller says.
    unsafe { topology.as_ref() }.map_or(std::ptr::null(), |topology| topology.file_text.as_ptr())
}

/// Gives a topology back and sets the handle to NULL.
///
/// # Safety
/// `topology` is NULL or points to a handle's variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_topology_free(topology: *mut *mut sapwood_topology_t) {
    if topology.is_null() {
        return;
    }
    // SAFETY: the caller's variable holds NULL or what `sapwood_topology_read` made.
    unsafe {
        let freed = topology.replace(std::ptr::null_mut());
        if !freed.is_null() {
            shield((), || drop(Box::from_raw(freed)));
        }
    }
}

fn role_of(role: Role) -> sapwood_role_t {
    match role {
        Role::FrontEnd => sapwood_role_t::SAPWOOD_ROLE_FRONT_END,
        Role::Comm => sapwood_role_t::SAPWOOD_ROLE_COMMUNICATION,
        Role::BackEnd => sapwood_role_t::SAPWOOD_ROLE_BACK_END,
    }
}
