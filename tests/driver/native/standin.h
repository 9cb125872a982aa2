/* A stand-in for NVIDIA's libcuda.so.1, for tests: handles, tables, limits, counters and failures on order.
 *
 * It computes nothing. An engine, registered by the process that loads it, reads PTX and runs launches; see engine.py.
 * Types, numbers and structures are those of the CUDA Driver API's interface for 64-bit Linux.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* --- the interface's types ------------------------------------------------------------------------------------ */

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct context *CUcontext;
typedef struct stream *CUstream;
typedef struct event *CUevent;
typedef struct code *CUmodule;
typedef struct code *CUlibrary;
typedef struct function *CUfunction;
typedef struct function *CUkernel;
typedef struct pool *CUmemoryPool;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
};

struct launch_attribute {
    int id;
    int pad;
    union {
        char room[64];
        struct {
            unsigned x, y, z;
        } cluster;
        int number;
    } value;
};

struct launch_config {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared;
    CUstream stream;
    struct launch_attribute *attributes;
    unsigned count;
};

/* --- objects behind handles (calls.c) --------------------------------------------------------------------------- */

enum kind { CONTEXT, STREAM, EVENT, MODULE, LIBRARY, FUNCTION, POOL, KINDS };

struct object {
    enum kind kind;
    struct object *next;
};

struct context {
    struct object object;
    CUdevice device;
    size_t limits[16];
};

struct stream {
    struct object object;
    CUcontext context;
    unsigned flags;
    int priority;
};

struct event {
    struct object object;
    unsigned flags;
    bool recorded;
    bool pending; /* behind a launch that never ends */
    double at;    /* milliseconds */
};

struct function {
    struct object object;
    struct code *code;
    char *name;
    unsigned params;
    uint32_t *offsets;
    uint32_t *sizes;
    uint32_t reqntid[3]; /* zeros: none */
    uint32_t max_threads;
    uint32_t static_shared;
    uint32_t registers;
    uint32_t cluster[3]; /* zeros: none */
    uint32_t max_rank;   /* 0: none */
    uint32_t counts_clusters;
    uint32_t ptx_version;
    uint32_t max_dynamic;
    uint32_t non_portable;
};

struct code {
    struct object object;
    uint64_t id;
    CUdevice device;
};

struct pool {
    struct object object;
    CUdevice device;
    uint64_t threshold;
};

void *object_new(enum kind kind, size_t size);
bool object_is(const void *handle, enum kind kind);
void object_free(void *object);
struct object *object_first(void);
unsigned object_count(enum kind kind);

/* --- calls: the log, failures on order, one caller at a time (calls.c) ----------------------------------------- */

int standin_enter(void);
void standin_leave(int *entered);
CUresult standin_begin(const char *name);
void standin_stick(CUresult code); /* every later call that needs a context fails with this */
bool standin_is_hung(void);
void standin_hang(void);
void standin_never(const char *call); /* a wait without end: says so and aborts */
bool standin_is_away(void);
unsigned long standin_setting(const char *name, unsigned long otherwise);

/* Opens each function of the interface: waits for the caller before, logs, and fails where that was ordered. */
#define BEGIN                                                                        \
    __attribute__((cleanup(standin_leave), unused)) int entered = standin_enter();   \
    CUresult ordered = standin_begin(__func__);                                      \
    if (ordered)                                                                     \
    return ordered

#define REQUIRE(condition, code) \
    do {                         \
        if (!(condition))        \
            return code;         \
    } while (0)

/* --- the engine: who reads PTX, gives memory and runs launches -------------------------------------------------- */

struct geometry {
    uint32_t grid[3]; /* CTAs */
    uint32_t block[3];
    uint32_t cluster[3];
    uint32_t shared;
    uint32_t cooperative;
};

struct engine {
    /* Reads a text and calls standin_define for each entry; a CUresult, and a log where the text is wrong. */
    int (*load)(uint64_t code, const char *text, size_t size, int sm, int cuda, char *log, size_t room);
    void (*unload)(uint64_t code);
    void (*prepare)(uint64_t code, const char *name); /* an entry has been fetched, and may soon be launched */
    int (*allocate)(size_t bytes, uint64_t *address, uint64_t *host);
    void (*release)(uint64_t address);
    /* A CUresult of the call in the low half, of what the kernel left behind in the high half; -1: has not ended. */
    int (*launch)(uint64_t code, const char *name, const struct geometry *geometry, const uint8_t *params, size_t size);
    void (*bring_out)(void); /* what kernels have printed */
};

extern struct engine standin_current_engine;

/* What an engine says of an entry. */
struct description {
    const char *name;
    uint32_t params;
    const uint32_t *offsets;
    const uint32_t *sizes;
    uint32_t reqntid[3];
    uint32_t max_threads;
    uint32_t static_shared;
    uint32_t registers;
    uint32_t cluster[3];
    uint32_t max_rank;
    uint32_t counts_clusters;
    uint32_t ptx_version;
};

/* --- devices and contexts (devices.c) --------------------------------------------------------------------------- */

struct model {
    int sm, multiprocessors, threads, shared, optin, ctas, l2;
    uint64_t memory;
};

int device_count(void);
const struct model *device_model(CUdevice device);
int device_cuda_version(void);
CUcontext current_context(void);
CUcontext primary_context(CUdevice device);
unsigned context_holds(void);

/* --- memory (memory.c), functions (code.c) ---------------------------------------------------------------------- */

void *memory_host(CUdeviceptr address, size_t bytes); /* NULL: not all of it lies in one allocation */
unsigned memory_count(bool device);
CUresult memory_add_global(struct code *code, const char *name, uint64_t address, uint64_t host, uint64_t bytes);
CUresult memory_find_global(const struct code *code, const char *name, CUdeviceptr *address, size_t *bytes);
void memory_drop_globals(const struct code *code);
bool stream_is_known(CUstream stream);
int resident_ctas(const struct function *function, int threads, size_t shared);

#endif
