// The few words of CUDA that clang's sources here need: they are compiled without the toolkit's headers.
#pragma once
#define GLOBAL __attribute__((global))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
#define CONSTANT __attribute__((constant))

DEVICE static inline int thread_x() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE static inline int thread_y() { return __nvvm_read_ptx_sreg_tid_y(); }
DEVICE static inline int block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE static inline int block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE static inline int block_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }
DEVICE static inline int width_x() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE static inline int width_y() { return __nvvm_read_ptx_sreg_ntid_y(); }
DEVICE static inline int blocks_x() { return __nvvm_read_ptx_sreg_nctaid_x(); }
