#pragma once

#include <hdf5.h>

#include <string>

#include "fuzz/random.h"

namespace attndiff::fuzzing {

/// Changes values of a dataset, or stores it anew in another type, shape, layout or not at all.
void edit_dataset(hid_t file, const std::string& path, Random& random);

}  // namespace attndiff::fuzzing
