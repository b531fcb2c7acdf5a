#pragma once

#include <hdf5.h>

#include <string>

#include "fuzz/random.h"

namespace attndiff::fuzzing {

/// Deletes, renames, adds or replaces one attribute of an object, in any type that some writer might use.
void edit_attribute(hid_t file, const std::string& object, Random& random);

}  // namespace attndiff::fuzzing
