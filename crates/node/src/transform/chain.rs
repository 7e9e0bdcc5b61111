//! The chain of filters that a request names.

use alloc::vec::Vec;

use sapwood_filter::{Chain, FilterError, FilterSpec, Registry};
use sapwood_packet::{FormatRef, Values, ValuesRef};
use sapwood_wire::FilterRequest;

use crate::interface::record::TELEMETRY;

pub(crate) fn chain(registry: &Registry, requests: &[FilterRequest]) -> Result<Chain, FilterError> {
    let spec = |request: &FilterRequest| FilterSpec {
        name: request.name.clone(),
        parameters: values_of(request),
    };
    let specs: Vec<FilterSpec> = requests.iter().map(spec).collect();
    if let [only] = &specs[..]
        && only.name == TELEMETRY
    {
        // Every node can make this one, whatever its program knows.
        let own = Registry::empty().with(TELEMETRY, crate::interface::record::make);
        return Chain::new(&own, &specs);
    }
    Chain::new(registry, &specs)
}

pub(crate) fn values_of(request: &FilterRequest) -> Values {
    let slab = sapwood_packet::Slab::copy_of(&request.parameters);
    FormatRef::from_codes(&request.format)
        .and_then(|format| ValuesRef::parse(format, slab.as_bytes()).ok())
        .map_or_else(Values::new, ValuesRef::to_values)
}
