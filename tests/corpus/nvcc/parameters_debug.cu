// A debug build of parameters.cu.
// flags: -G
#include "parameters.cu"
