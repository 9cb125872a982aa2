/* Handles, the log of calls, failures on order, counters: what every function of the interface begins with. */
#include "standin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int standin_enter(void) {
    pthread_mutex_lock(&lock);
    return 1;
}

void standin_leave(int *entered) {
    (void)entered;
    pthread_mutex_unlock(&lock);
}

unsigned long standin_setting(const char *name, unsigned long otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoul(text, NULL, 10) : otherwise;
}

/* --- objects ---------------------------------------------------------------------------------------------------- */

static struct object *objects;

void *object_new(enum kind kind, size_t size) {
    struct object *made = calloc(1, size);
    if (!made)
        return NULL;
    made->kind = kind;
    made->next = objects;
    objects = made;
    return made;
}

bool object_is(const void *handle, enum kind kind) {
    for (const struct object *each = objects; each; each = each->next)
        if (each == handle)
            return each->kind == kind;
    return false;
}

void object_free(void *object) {
    for (struct object **at = &objects; *at; at = &(*at)->next)
        if (*at == object) {
            *at = (*at)->next;
            free(object);
            return;
        }
}

struct object *object_first(void) {
    return objects;
}

unsigned object_count(enum kind kind) {
    unsigned count = 0;
    for (const struct object *each = objects; each; each = each->next)
        count += each->kind == kind;
    return count;
}

/* Live things of a kind: allocations, pinned, contexts (holds on primary ones), streams, events, modules, libraries,
 * pools; -1 for a word it does not know. */
EXPORT int standin_count(const char *what) {
    static const struct {
        const char *word;
        enum kind kind;
    } words[] = {
        {"streams", STREAM}, {"events", EVENT}, {"modules", MODULE}, {"libraries", LIBRARY}, {"pools", POOL},
    };
    if (!strcmp(what, "allocations") || !strcmp(what, "pinned"))
        return (int)memory_count(what[0] == 'a');
    if (!strcmp(what, "contexts"))
        return (int)context_holds();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(what, words[i].word))
            return (int)object_count(words[i].kind);
    return -1;
}

/* --- the log ---------------------------------------------------------------------------------------------------- */

enum { LOG_MOST = 1 << 16, NAME_MOST = 64 };

static const char *logged[LOG_MOST];
static size_t log_size;

/* Bytes of a function's name without the _v2 or _v3 of its later forms. */
static size_t base_length(const char *name) {
    size_t size = strlen(name);
    bool versioned = size > 3 && name[size - 3] == '_' && name[size - 2] == 'v' && name[size - 1] > '0' &&
                     name[size - 1] <= '9';
    return versioned ? size - 3 : size;
}

EXPORT void standin_log_clear(void) {
    log_size = 0;
}

EXPORT size_t standin_log_size(void) {
    return log_size;
}

/* The name of a call by its number; "" beyond the end. */
EXPORT size_t standin_log_entry(size_t index, char *name, size_t room) {
    if (index >= log_size || room == 0)
        return 0;
    size_t size = base_length(logged[index]);
    size = size < room ? size : room - 1;
    memcpy(name, logged[index], size);
    name[size] = 0;
    return size;
}

/* --- failures on order ------------------------------------------------------------------------------------------ */

struct order {
    char name[NAME_MOST];
    unsigned long at; /* the call that fails, counted from 1; 0: every one */
    CUresult code;
    bool sticks;
    unsigned long seen;
};

enum { ORDERS_MOST = 16 };

static struct order orders[ORDERS_MOST];
static size_t order_count;
static bool orders_read;
static CUresult stuck;
static bool hung, away;

/* Read "NAME:N=CODE", more after commas: the Nth call of NAME fails with CODE (N is *: every one), and with a ! after
 * CODE all calls after it. An empty text forgets them. Returns how many were understood. */
EXPORT int standin_fail(const char *text) {
    order_count = 0;
    orders_read = true;
    while (text && *text && order_count < ORDERS_MOST) {
        struct order order = {0};
        const char *colon = strchr(text, ':'), *equals = strchr(text, '=');
        if (!colon || !equals || colon > equals || colon - text >= NAME_MOST)
            break;
        memcpy(order.name, text, (size_t)(colon - text));
        order.at = colon[1] == '*' ? 0 : strtoul(colon + 1, NULL, 10);
        char *end;
        order.code = (CUresult)strtol(equals + 1, &end, 10);
        order.sticks = *end == '!';
        orders[order_count++] = order;
        text = strchr(end, ',');
        text = text ? text + 1 : NULL;
    }
    return (int)order_count;
}

/* Questions that a driver answers whatever became of a context. */
static bool needs_no_context(const char *name) {
    static const char *const free_of_it[] = {"cuGet", "cuInit", "cuDriver", "cuDeviceGet", "cuDevicePrimaryCtxR"};
    for (size_t i = 0; i < sizeof free_of_it / sizeof *free_of_it; i++)
        if (!strncmp(name, free_of_it[i], strlen(free_of_it[i])))
            return true;
    return false;
}

/* Whether a call brings out what kernels have printed (CUDA C++ Programming Guide, "Formatted Output", limitations):
 * a launch, a wait, a copy that blocks, a module that comes or goes. A question, such as cuEventQuery, does not. */
static bool brings_out(const char *name) {
    static const char *const ones[] = {"cuLaunch", "cuCtxSync", "cuStreamSync", "cuEventSync", "cuModuleLoad",
                                       "cuModuleUnload", "cuLibraryLoad", "cuLibraryUnload", "cuCtxDestroy"};
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        if (!strncmp(name, ones[i], strlen(ones[i])))
            return true;
    return !strncmp(name, "cuMemcpy", 8) && !strstr(name, "Async");
}

CUresult standin_begin(const char *name) {
    size_t size = base_length(name);
    if (brings_out(name) && standin_current_engine.bring_out)
        standin_current_engine.bring_out();
    if (!orders_read)
        standin_fail(getenv("STANDIN_FAIL"));
    if (log_size < LOG_MOST)
        logged[log_size++] = name;
    if (stuck && !needs_no_context(name))
        return stuck;
    for (size_t i = 0; i < order_count; i++) {
        struct order *order = &orders[i];
        if (strlen(order->name) != size || strncmp(order->name, name, size) != 0)
            continue;
        order->seen++;
        if (order->at != 0 && order->at != order->seen)
            continue;
        if (order->sticks)
            stuck = order->code;
        return order->code;
    }
    return CUDA_SUCCESS;
}

void standin_stick(CUresult code) {
    if (!stuck)
        stuck = code;
}

/* Forget a sticky error and a launch without end, as a new process would; handles stay. */
EXPORT void standin_heal(void) {
    stuck = CUDA_SUCCESS;
    hung = false;
}

EXPORT int standin_is_sound(void) {
    return !stuck && !hung;
}

void standin_hang(void) {
    hung = true;
}

bool standin_is_hung(void) {
    return hung;
}

void standin_never(const char *call) {
    fprintf(stderr, "stand-in driver: %s would wait without end for a kernel that does not end\n", call);
    abort();
}

/* While away the library says that there is no GPU, for tests that want none in a process that has loaded it. */
EXPORT void standin_away(int is_away) {
    away = is_away != 0;
}

bool standin_is_away(void) {
    return away;
}

/* --- the engine ------------------------------------------------------------------------------------------------- */

struct engine standin_current_engine;

EXPORT void standin_engine(const struct engine *engine) {
    standin_current_engine = *engine;
}
