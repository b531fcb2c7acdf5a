#pragma once

namespace attndiff::fuzzing {

/// Tells apart what ends the children that check files: HDF5, which a guarded check survives and reports as damage, or
/// this project's code, which is a finding. Call once, before the first child.
void watch_children();

/// Whether a child so far ended by a fault with no frame of HDF5 on its stack.
[[nodiscard]] bool own_fault_in_child();

}  // namespace attndiff::fuzzing
