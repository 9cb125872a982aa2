/* GPUs, what they can do, and their primary contexts.
 *
 * STANDIN_GPUS lists the architectures, "90" when unset; STANDIN_CUDA is the driver's version, 13000;
 * STANDIN_MEMORY the bytes of each GPU.
 */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPUS_MOST = 16, KIB = 1024 };

static const struct model models[] = {
    {80, 108, 2048, 164 * KIB, 163 * KIB, 32, 40 << 20, 80ull << 30},
    {90, 132, 2048, 228 * KIB, 227 * KIB, 32, 50 << 20, 141ull << 30},
    {100, 148, 2048, 228 * KIB, 227 * KIB, 32, 126 << 20, 180ull << 30},
    {120, 170, 1536, 100 * KIB, 99 * KIB, 24, 96 << 20, 32ull << 30},
};

static struct {
    struct model model;
    CUcontext context;
    unsigned holds;
} gpus[GPUS_MOST];
static int gpu_count = -1;
static bool initialised;
static _Thread_local CUcontext current;

static void add_gpu(int sm) {
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (models[i].sm == sm && gpu_count < GPUS_MOST) {
            gpus[gpu_count].model = models[i];
            gpus[gpu_count].model.memory = standin_setting("STANDIN_MEMORY", models[i].memory);
            gpu_count++;
        }
}

/* The GPUs that CUDA_VISIBLE_DEVICES leaves: numbers, up to the first that is none. */
static void hide_gpus(void) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!visible)
        return;
    struct model all[GPUS_MOST];
    int count = gpu_count;
    for (int i = 0; i < count; i++)
        all[i] = gpus[i].model;
    gpu_count = 0;
    for (char *end; *visible; visible = *end == ',' ? end + 1 : end) {
        long index = strtol(visible, &end, 10);
        if (end == visible || index < 0 || index >= count)
            break;
        gpus[gpu_count++].model = all[index];
    }
}

int device_count(void) {
    if (gpu_count < 0) {
        const char *list = getenv("STANDIN_GPUS");
        gpu_count = 0;
        for (char *end = (char *)(list ? list : "90"); *end; end += *end == ',') {
            const char *from = end;
            add_gpu((int)strtol(from, &end, 10));
            if (end == from)
                break;
        }
        hide_gpus();
    }
    return gpu_count;
}

const struct model *device_model(CUdevice device) {
    return device >= 0 && device < device_count() ? &gpus[device].model : NULL;
}

int device_cuda_version(void) {
    return (int)standin_setting("STANDIN_CUDA", 13000);
}

CUcontext current_context(void) {
    return object_is(current, CONTEXT) ? current : NULL;
}

CUcontext primary_context(CUdevice device) {
    return gpus[device].context;
}

unsigned context_holds(void) {
    unsigned sum = 0;
    for (int i = 0; i < device_count(); i++)
        sum += gpus[i].holds;
    return sum;
}

#define KNOWN(device)                                             \
    REQUIRE(initialised, CUDA_ERROR_NOT_INITIALIZED);             \
    REQUIRE(device_model(device), CUDA_ERROR_INVALID_DEVICE)

/* --- the driver and its devices --------------------------------------------------------------------------------- */

EXPORT CUresult cuInit(unsigned flags) {
    BEGIN;
    REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(!standin_is_away() && device_count() > 0, CUDA_ERROR_NO_DEVICE);
    initialised = true;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version) {
    BEGIN;
    REQUIRE(version, CUDA_ERROR_INVALID_VALUE);
    *version = device_cuda_version();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count) {
    BEGIN;
    REQUIRE(initialised, CUDA_ERROR_NOT_INITIALIZED);
    *count = device_count();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int index) {
    BEGIN;
    KNOWN(index);
    *device = index;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int room, CUdevice device) {
    BEGIN;
    KNOWN(device);
    snprintf(name, (size_t)room, "Stand-in %d", device_model(device)->sm);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(unsigned char *uuid, CUdevice device) {
    BEGIN;
    KNOWN(device);
    memset(uuid, 0, 16);
    uuid[0] = 0x57;
    uuid[15] = (unsigned char)device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *id, int room, CUdevice device) {
    BEGIN;
    KNOWN(device);
    snprintf(id, (size_t)room, "0000:%02X:00.0", device + 1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    BEGIN;
    KNOWN(device);
    *bytes = device_model(device)->memory;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    BEGIN;
    KNOWN(device);
    KNOWN(peer);
    *can = 0;
    return CUDA_SUCCESS;
}

/* Attributes by number that all GPUs here have alike. */
static const struct {
    int attribute, value;
} common[] = {
    {1, 1024},       {2, 1024},  {3, 1024}, {4, 64}, /* threads and extents of a block */
    {5, 0x7fffffff}, {6, 65535}, {7, 65535},         /* extents of a grid */
    {8, 48 * KIB},                                   /* shared memory a block */
    {9, 64 * KIB},                                   /* constant memory */
    {10, 32},                                        /* warp */
    {11, 0x7fffffff},                                /* pitch */
    {12, 65536},     {82, 65536},                    /* registers a block, a multiprocessor */
    {13, 1980000},   {36, 2619000},                  /* clocks of the chip and its memory, kHz */
    {14, 512},       {30, 512},                      /* alignment of textures and surfaces */
    {37, 5120},                                      /* bits of the memory's bus */
    {111, 1 * KIB},                                  /* shared memory that the system keeps of each block */
    {15, 1},         {31, 1},    {40, 1},            /* copies while kernels run, kernels at once, copy engines */
    {19, 1},         {41, 1},    {83, 1},            /* memory of the host mapped, unified addresses, managed memory */
    {78, 1},         {90, 1},                        /* priorities of streams, preemption */
    {79, 1},         {80, 1},                        /* L1 of global and local memory */
    {95, 1},         {115, 1},                       /* cooperative launches, memory pools */
};

/* By number of the attribute; what is not here is 0, as most of what a GPU may have is. */
static int attribute_of(const struct model *model, CUdevice device, int attribute) {
    switch (attribute) {
    case 16:
        return model->multiprocessors;
    case 33: /* PCI bus */
        return device + 1;
    case 38:
        return model->l2;
    case 39:
        return model->threads;
    case 75: /* compute capability */
        return model->sm / 10;
    case 76:
        return model->sm % 10;
    case 81: /* shared memory a multiprocessor */
        return model->shared;
    case 97: /* shared memory a block, opted in */
        return model->optin;
    case 106:
        return model->ctas;
    case 120: /* clusters */
    case 127: /* tensor maps */
        return model->sm >= 90;
    }
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (common[i].attribute == attribute)
            return common[i].value;
    return 0;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    BEGIN;
    KNOWN(device);
    REQUIRE(attribute > 0 && attribute < 160, CUDA_ERROR_INVALID_VALUE);
    *value = attribute_of(device_model(device), device, attribute);
    return CUDA_SUCCESS;
}

/* --- contexts --------------------------------------------------------------------------------------------------- */

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    BEGIN;
    KNOWN(device);
    if (!gpus[device].context) {
        CUcontext made = object_new(CONTEXT, sizeof *made);
        REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
        made->device = device;
        made->limits[0] = 1024;      /* a thread's stack */
        made->limits[1] = 1 << 20;   /* what kernels print */
        made->limits[2] = 8 << 20;   /* their heap */
        gpus[device].context = made;
    }
    gpus[device].holds++;
    *context = gpus[device].context;
    return CUDA_SUCCESS;
}

/* The context stays when the last lets go, so that what was forgotten in it can still be counted. */
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    BEGIN;
    KNOWN(device);
    REQUIRE(gpus[device].holds > 0, CUDA_ERROR_INVALID_CONTEXT);
    gpus[device].holds--;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    BEGIN;
    KNOWN(device);
    *flags = 0;
    *active = gpus[device].holds > 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    BEGIN;
    REQUIRE(initialised, CUDA_ERROR_NOT_INITIALIZED);
    REQUIRE(!context || object_is(context, CONTEXT), CUDA_ERROR_INVALID_CONTEXT);
    current = context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
    BEGIN;
    REQUIRE(initialised, CUDA_ERROR_NOT_INITIALIZED);
    *context = current_context();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    BEGIN;
    CUcontext context = current_context();
    REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
    *device = context->device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
    BEGIN;
    context = context ? context : current_context();
    REQUIRE(object_is(context, CONTEXT), CUDA_ERROR_INVALID_CONTEXT);
    *device = context->device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
    BEGIN;
    context = context ? context : current_context();
    REQUIRE(object_is(context, CONTEXT), CUDA_ERROR_INVALID_CONTEXT);
    *id = (unsigned long long)context->device + 1;
    return CUDA_SUCCESS;
}

static CUresult wait_for_all(CUcontext context) {
    REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
    if (standin_is_hung())
        standin_never("cuCtxSynchronize");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void) {
    BEGIN;
    return wait_for_all(current_context());
}

EXPORT CUresult cuCtxSynchronize_v2(CUcontext context) {
    BEGIN;
    return wait_for_all(context ? context : current_context());
}

EXPORT CUresult cuCtxGetLimit(size_t *value, int limit) {
    BEGIN;
    CUcontext context = current_context();
    REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(limit >= 0 && limit < 9, CUDA_ERROR_UNSUPPORTED_LIMIT);
    *value = context->limits[limit];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetLimit(int limit, size_t value) {
    BEGIN;
    CUcontext context = current_context();
    REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(limit >= 0 && limit < 7, CUDA_ERROR_UNSUPPORTED_LIMIT);
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    BEGIN;
    REQUIRE(current_context(), CUDA_ERROR_INVALID_CONTEXT);
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

/* --- names of failures ------------------------------------------------------------------------------------------ */

static const struct {
    CUresult code;
    const char *name, *words;
} results[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "API call requires a newer CUDA driver"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "limit is not supported on this architecture"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "PTX JIT compilation was disabled"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported on global/shared address space"},
    {718, "CUDA_ERROR_INVALID_PC", "invalid program counter"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "misconfigured cluster size"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult result_text(CUresult code, bool words, const char **text) {
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i].code == code) {
            *text = words ? results[i].words : results[i].name;
            return CUDA_SUCCESS;
        }
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorName(CUresult code, const char **name) {
    BEGIN;
    return result_text(code, false, name);
}

EXPORT CUresult cuGetErrorString(CUresult code, const char **words) {
    BEGIN;
    return result_text(code, true, words);
}
