// One round as the server tells it: tools/report/src/record.rs has the same names with their units.

export interface Metric {
  sum: number;
  mean: number;
  standard_deviation: number | null;
  min: number;
  min_rank: number;
  max: number;
  max_rank: number;
}

export type MetricName = "time_ns" | "calls" | "bytes";

export interface MpiEvent {
  name: string;
  class: string;
  communicator_size_class: number | null;
  ranks: number;
  calls: Metric;
  time_ns: Metric;
  bytes: Metric;
  imbalance: number | null;
}

export interface Loss {
  ranks: string;
  reason: string;
}

export interface Activity {
  function: string | null;
  communicator: string;
  region: string;
  condition: string;
  is_long: boolean;
  ranks: string;
  peers: string;
  any_source: boolean;
  shortest_s: number;
  longest_s: number;
  longest_rank: number;
}

export interface Efficiency {
  parallel: number;
  load_balance: number;
  communication: number;
}

export interface Time {
  wall_ns: Metric;
  mpi_ns: Metric;
  compute_ns: Metric;
  mpi_ppm: Metric;
  efficiency: Efficiency | null;
}

export interface RankValues {
  metric: string;
  ranks_per_bin: number;
  mean: (number | null)[];
  max: (number | null)[];
}

export interface Histogram {
  event: string;
  communicator_size_class: number | null;
  metric: string;
  method: string;
  bins: { low: number; high: number; counts: number[] };
}

export interface RankClass {
  id: number;
  ranks: string;
  size: number;
  names: string[];
  events: MpiEvent[];
  histograms: Histogram[];
}

export interface Classification {
  scheme: string;
  reduction_factor: number;
  cumulated_factor: number;
  classes: RankClass[];
  left_out: number;
}

export interface Outlier {
  event: string;
  metric: string;
  rank: number | null;
  host: string;
  value: number;
  median: number;
  score: number;
}

export interface StackFrame {
  name: string;
  ranks: string;
  count: number;
  children: StackFrame[];
}

export interface Process {
  id: number;
  parent: number | null;
  role: string;
  host: string;
  ranks: string;
  load: Record<string, number>;
  is_lost: boolean;
}

export interface Settings {
  change: number;
  interval_s: number;
  groups: string[];
  groups_known: string[];
  ranks: string;
  obeyed: string;
  tracing: boolean;
  sampling_s: number;
  numbers: Record<string, Metric>;
}

export interface Death {
  ranks: string;
  elapsed_s: number;
  is_first: boolean;
  cause: string;
  inside: string;
  manner: "died" | "returned" | "killed_by_launcher" | "as_told";
}

export interface RoundRecord {
  schema: string;
  number: number;
  // The mark of an iteration, from 1; none for a round by time or on demand.
  iteration: number | null;
  elapsed_s: number;
  world_size: number;
  covered: string;
  states: { running: string; finalized: string; exited: string; lost: string };
  missing: Loss[];
  dropped: number;
  unreadable: number;
  events: MpiEvent[];
  time: Time | null;
  activities: Activity[];
  standstill: string[];
  rank_values: RankValues[];
  histograms: Histogram[];
  classifications: Classification[];
  outliers: Outlier[];
  stacks: { elapsed_s: number; roots: StackFrame[]; missing: Loss[] } | null;
  deaths: Death[];
  tree: Process[];
  settings: Settings | null;
}

// A round, or an iteration, with what the server says of it.
export interface Round {
  // The order in which it came to the server: rounds and iterations are both numbered from 0.
  sequence: number;
  published_ms: number;
  left_out: Record<string, number>;
  record: RoundRecord;
}

export interface About {
  command: string;
  is_replay: boolean;
  has_control: boolean;
  end: string | null;
  rounds_seen: number;
  rounds_kept: number;
}
