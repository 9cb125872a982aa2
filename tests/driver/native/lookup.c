/* cuGetProcAddress: names and versions to functions. What a driver of this version would have and this one lacks is
 * answered with CUDA_ERROR_NOT_SUPPORTED, and stands in the log under its name. */
#include "standin.h"

#include <string.h>

typedef void (*any_function)(void);

/* Functions of this library, with the CUDA version that first knew each under its name. */
#define FUNCTIONS(X)                                                                                              \
    X(cuInit, cuInit, 2000)                                                                                       \
    X(cuDriverGetVersion, cuDriverGetVersion, 2020)                                                               \
    X(cuGetProcAddress, cuGetProcAddress, 11030)                                                                  \
    X(cuGetProcAddress, cuGetProcAddress_v2, 12000)                                                               \
    X(cuGetErrorName, cuGetErrorName, 6000)                                                                       \
    X(cuGetErrorString, cuGetErrorString, 6000)                                                                   \
    X(cuDeviceGetCount, cuDeviceGetCount, 2000)                                                                   \
    X(cuDeviceGet, cuDeviceGet, 2000)                                                                             \
    X(cuDeviceGetName, cuDeviceGetName, 2000)                                                                     \
    X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040)                                                                 \
    X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010)                                                             \
    X(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020)                                                                \
    X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000)                                                           \
    X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000)                                                         \
    X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020)                                                \
    X(cuDeviceGetMemPool, cuDeviceGetMemPool, 11020)                                                              \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)                                                   \
    X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000)                                             \
    X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000)                                               \
    X(cuCtxSetCurrent, cuCtxSetCurrent, 4000)                                                                     \
    X(cuCtxGetCurrent, cuCtxGetCurrent, 4000)                                                                     \
    X(cuCtxGetDevice, cuCtxGetDevice, 2000)                                                                       \
    X(cuCtxGetDevice, cuCtxGetDevice_v2, 13000)                                                                   \
    X(cuCtxGetId, cuCtxGetId, 12000)                                                                              \
    X(cuCtxSynchronize, cuCtxSynchronize, 2000)                                                                   \
    X(cuCtxSynchronize, cuCtxSynchronize_v2, 13000)                                                               \
    X(cuCtxGetLimit, cuCtxGetLimit, 3010)                                                                         \
    X(cuCtxSetLimit, cuCtxSetLimit, 3010)                                                                         \
    X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050)                                             \
    X(cuMemGetInfo, cuMemGetInfo_v2, 3020)                                                                        \
    X(cuMemAlloc, cuMemAlloc_v2, 3020)                                                                            \
    X(cuMemFree, cuMemFree_v2, 3020)                                                                              \
    X(cuMemGetAddressRange, cuMemGetAddressRange_v2, 3020)                                                        \
    X(cuMemAllocHost, cuMemAllocHost_v2, 3020)                                                                    \
    X(cuMemHostAlloc, cuMemHostAlloc, 2020)                                                                       \
    X(cuMemFreeHost, cuMemFreeHost, 2000)                                                                         \
    X(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020)                                                                        \
    X(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020)                                                                        \
    X(cuMemcpyDtoD, cuMemcpyDtoD_v2, 3020)                                                                        \
    X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020)                                                              \
    X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020)                                                              \
    X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020)                                                              \
    X(cuMemcpy, cuMemcpy, 4000)                                                                                   \
    X(cuMemcpyAsync, cuMemcpyAsync, 4000)                                                                         \
    X(cuMemsetD8, cuMemsetD8_v2, 3020)                                                                            \
    X(cuMemsetD16, cuMemsetD16_v2, 3020)                                                                          \
    X(cuMemsetD32, cuMemsetD32_v2, 3020)                                                                          \
    X(cuMemsetD8Async, cuMemsetD8Async, 3020)                                                                     \
    X(cuMemsetD16Async, cuMemsetD16Async, 3020)                                                                   \
    X(cuMemsetD32Async, cuMemsetD32Async, 3020)                                                                   \
    X(cuMemPoolCreate, cuMemPoolCreate, 11020)                                                                    \
    X(cuMemPoolDestroy, cuMemPoolDestroy, 11020)                                                                  \
    X(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020)                                                                    \
    X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020)                                                        \
    X(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020)                                                        \
    X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020)                                                    \
    X(cuMemAllocAsync, cuMemAllocAsync, 11020)                                                                    \
    X(cuMemFreeAsync, cuMemFreeAsync, 11020)                                                                      \
    X(cuPointerGetAttribute, cuPointerGetAttribute, 4000)                                                         \
    X(cuPointerGetAttributes, cuPointerGetAttributes, 7000)                                                       \
    X(cuModuleLoadData, cuModuleLoadData, 2000)                                                                   \
    X(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010)                                                               \
    X(cuModuleUnload, cuModuleUnload, 2000)                                                                       \
    X(cuModuleGetFunction, cuModuleGetFunction, 2000)                                                             \
    X(cuModuleGetFunctionCount, cuModuleGetFunctionCount, 12040)                                                  \
    X(cuModuleGetGlobal, cuModuleGetGlobal_v2, 3020)                                                              \
    X(cuLibraryLoadData, cuLibraryLoadData, 12000)                                                                \
    X(cuLibraryUnload, cuLibraryUnload, 12000)                                                                    \
    X(cuLibraryGetKernel, cuLibraryGetKernel, 12000)                                                              \
    X(cuLibraryGetKernelCount, cuLibraryGetKernelCount, 12040)                                                    \
    X(cuLibraryEnumerateKernels, cuLibraryEnumerateKernels, 12040)                                                \
    X(cuLibraryGetModule, cuLibraryGetModule, 12000)                                                              \
    X(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000)                                                              \
    X(cuKernelGetFunction, cuKernelGetFunction, 12000)                                                            \
    X(cuKernelGetLibrary, cuKernelGetLibrary, 12050)                                                              \
    X(cuKernelGetName, cuKernelGetName, 12030)                                                                    \
    X(cuKernelGetAttribute, cuKernelGetAttribute, 12000)                                                          \
    X(cuKernelSetAttribute, cuKernelSetAttribute, 12000)                                                          \
    X(cuKernelGetParamInfo, cuKernelGetParamInfo, 12040)                                                          \
    X(cuFuncGetModule, cuFuncGetModule, 11000)                                                                    \
    X(cuFuncGetName, cuFuncGetName, 12030)                                                                        \
    X(cuFuncLoad, cuFuncLoad, 12040)                                                                              \
    X(cuFuncIsLoaded, cuFuncIsLoaded, 12040)                                                                      \
    X(cuFuncGetAttribute, cuFuncGetAttribute, 2020)                                                               \
    X(cuFuncSetAttribute, cuFuncSetAttribute, 9000)                                                               \
    X(cuFuncGetParamInfo, cuFuncGetParamInfo, 12040)                                                              \
    X(cuStreamCreate, cuStreamCreate, 2000)                                                                       \
    X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050)                                               \
    X(cuStreamDestroy, cuStreamDestroy_v2, 4000)                                                                  \
    X(cuStreamSynchronize, cuStreamSynchronize, 2000)                                                             \
    X(cuStreamQuery, cuStreamQuery, 2000)                                                                         \
    X(cuStreamGetCtx, cuStreamGetCtx, 9020)                                                                       \
    X(cuStreamGetCtx, cuStreamGetCtx_v2, 12050)                                                                   \
    X(cuStreamGetDevice, cuStreamGetDevice, 12080)                                                                \
    X(cuStreamGetPriority, cuStreamGetPriority, 5050)                                                             \
    X(cuStreamGetFlags, cuStreamGetFlags, 5050)                                                                   \
    X(cuStreamIsCapturing, cuStreamIsCapturing, 10000)                                                            \
    X(cuStreamWaitEvent, cuStreamWaitEvent, 3020)                                                                 \
    X(cuEventCreate, cuEventCreate, 2000)                                                                         \
    X(cuEventDestroy, cuEventDestroy_v2, 4000)                                                                    \
    X(cuEventRecord, cuEventRecord, 2000)                                                                         \
    X(cuEventRecordWithFlags, cuEventRecordWithFlags, 11010)                                                      \
    X(cuEventQuery, cuEventQuery, 2000)                                                                           \
    X(cuEventSynchronize, cuEventSynchronize, 2000)                                                               \
    X(cuEventElapsedTime, cuEventElapsedTime_v2, 2000)                                                            \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050)             \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, \
      7000)                                                                                                       \
    X(cuLaunchKernel, cuLaunchKernel, 4000)                                                                       \
    X(cuLaunchKernelEx, cuLaunchKernelEx, 11060)                                                                  \
    X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000)                                                 \
    X(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled, 12000)

#define DECLARE(name, symbol, since) extern CUresult symbol();
#define ROW(name, symbol, since) {#name, (any_function)symbol, since},

enum { FOUND = 0, MISSING = 1, TOO_NEW = 2 };

/* --- names that are asked for and not here ----------------------------------------------------------------------- */

enum { ABSENT_MOST = 1024, NAME_MOST = 64 };

static char absent[ABSENT_MOST][NAME_MOST];
static size_t absent_count;

static CUresult call_absent(size_t number) {
    int entered __attribute__((cleanup(standin_leave), unused)) = standin_enter();
    CUresult ordered = standin_begin(absent[number]);
    return ordered ? ordered : CUDA_ERROR_NOT_SUPPORTED;
}

/* One function for each number, since a function that is called by address alone cannot know its name. */
#define ABSENT(n) static CUresult absent_##n(void) { return call_absent(0x##n); }
#define NAMED(n) (any_function)absent_##n,
#define SIXTEEN(X, n)                                                                                        \
    X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)                                          \
    X(n##8) X(n##9) X(n##a) X(n##b) X(n##c) X(n##d) X(n##e) X(n##f)
#define SIXTEENS(X, n)                                                                                       \
    SIXTEEN(X, n##0) SIXTEEN(X, n##1) SIXTEEN(X, n##2) SIXTEEN(X, n##3) SIXTEEN(X, n##4) SIXTEEN(X, n##5)    \
    SIXTEEN(X, n##6) SIXTEEN(X, n##7) SIXTEEN(X, n##8) SIXTEEN(X, n##9) SIXTEEN(X, n##a) SIXTEEN(X, n##b)    \
    SIXTEEN(X, n##c) SIXTEEN(X, n##d) SIXTEEN(X, n##e) SIXTEEN(X, n##f)

SIXTEENS(ABSENT, 0)
SIXTEENS(ABSENT, 1)
SIXTEENS(ABSENT, 2)
SIXTEENS(ABSENT, 3)

static const any_function answers[ABSENT_MOST] = {
    SIXTEENS(NAMED, 0) SIXTEENS(NAMED, 1) SIXTEENS(NAMED, 2) SIXTEENS(NAMED, 3)
};

static any_function answer_for(const char *name) {
    for (size_t i = 0; i < absent_count; i++)
        if (!strcmp(absent[i], name))
            return answers[i];
    if (absent_count == ABSENT_MOST)
        return NULL;
    strncpy(absent[absent_count], name, NAME_MOST - 1);
    return answers[absent_count++];
}

/* --- the lookup -------------------------------------------------------------------------------------------------- */

struct row {
    const char *name;
    any_function function;
    int since;
};

static const struct row *rows(size_t *count);

/* The newest form of a function that is no newer than what is asked for, and than this driver. */
static any_function find(const char *name, int version, int *status) {
    int most = version < device_cuda_version() ? version : device_cuda_version();
    size_t count;
    const struct row *table = rows(&count), *best = NULL;
    bool known = false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) != 0)
            continue;
        known = true;
        if (table[i].since <= most && (!best || table[i].since > best->since))
            best = &table[i];
    }
    if (best || known || version > device_cuda_version()) {
        *status = best ? FOUND : known || version > device_cuda_version() ? TOO_NEW : MISSING;
        return best ? best->function : NULL;
    }
    *status = FOUND;
    return answer_for(name);
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status) {
    (void)flags;
    REQUIRE(name && function, CUDA_ERROR_INVALID_VALUE);
    int found;
    any_function answer = find(name, version, &found);
    memcpy(function, &answer, sizeof answer);
    if (status)
        *status = found;
    return answer ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

FUNCTIONS(DECLARE)

static const struct row *rows(size_t *count) {
    static const struct row table[] = {FUNCTIONS(ROW)};
    *count = sizeof table / sizeof *table;
    return table;
}
