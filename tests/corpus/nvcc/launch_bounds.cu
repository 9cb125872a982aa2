// Every form of launch bounds and register limits.
// targets: sm_90
extern "C" __global__ void __launch_bounds__(64) threads_only(int *x) { x[threadIdx.x] = 1; }
extern "C" __global__ void __launch_bounds__(256, 4) threads_and_blocks(int *x) { x[threadIdx.x] = 2; }
extern "C" __global__ void __launch_bounds__(128, 1, 8) with_cluster_rank(int *x) { x[threadIdx.x] = 3; }
extern "C" __global__ void __maxnreg__(40) registers_only(int *x) { x[threadIdx.x] = 4; }
extern "C" __global__ void __launch_bounds__(1024) __cluster_dims__(4, 2, 1) in_cluster(int *x) { x[threadIdx.x] = 5; }
extern "C" __global__ void __block_size__((128, 2, 1)) exact_block(int *x) { x[threadIdx.x] = 6; }
