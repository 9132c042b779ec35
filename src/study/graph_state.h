// Where every node of a study stands, for onlookers: OUTPUT/NAME.graph.json (io/graph_file.h).
#pragma once
#include "io/graph_file.h"
#include "study/plan.h"

namespace ropd::study {

// Done, claimed by a living process, or open: as the folder says now.
io::StudyGraph graph_state(const StudyFile& file, const Plan& plan, const Store& store);

void write_graph_state(const StudyFile& file, const Plan& plan, const Store& store);

}  // namespace ropd::study
