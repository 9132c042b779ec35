// Random damage to files, as disks, copies and people do it.
#pragma once
#include <random>
#include <string>

#include "torture/tree.h"

namespace ropd::torture {

// Damages one file of the tree; the same random numbers, the same damage. Says what was done; empty when the
// tree holds no file.
std::string damage(Tree& tree, std::mt19937_64& random);

// Damages the text of one file that must stay where it is. Says what was done.
std::string damage_content(std::string& content, std::mt19937_64& random);

}  // namespace ropd::torture
