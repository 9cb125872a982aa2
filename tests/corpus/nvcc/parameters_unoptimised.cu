// Compiled without optimisation of parameters.cu.
// flags: -Xcicc -O0
#include "parameters.cu"
