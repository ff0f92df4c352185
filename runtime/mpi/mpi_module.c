/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives over MPI.
 *
 * A meeting is two collective calls of MPI: the first exchanges the sizes, or that a rank has left,
 * the second the bytes. A rank that leaves takes part in one more meeting to tell that, because the
 * others are in a meeting or will come to one: at the latest to the one that ends their runs. So no
 * rank waits forever for a rank that failed; those that wait for a value from it get a notice
 * (mpi_group.h).
 */
#include "runtime/mpi/mpi_module.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/mpi/mpi_group.h"
#include "runtime/mpi/mpi_watch.h"
#include "runtime/util/memory.h"

/* Sent in place of a size. */
#define LEFT  UINT64_MAX       /* the rank has left this run */
#define ENDED (UINT64_MAX - 1) /* the rank has freed its end of the group */

static bool we_started; /* this module has started MPI, not the program */

/* ---- meeting -------------------------------------------------------------------------- */

enum xm_status
xm_mpi_check(int code, const char *call, struct xm_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    if (code == MPI_SUCCESS)
        return XM_OK;
    MPI_Error_string(code, text, &n);
    return xm_fail(err, XM_DEVICE, "%s: %s", call, text);
}

static bool
is_size(uint64_t shown)
{
    return shown != LEFT && shown != ENDED;
}

/* Exchanges the sizes of what each rank shows. *left: the first rank that has left or ended, else
 * the number of ranks. */
static enum xm_status
tell_sizes(struct xm_mpi_group *g, uint64_t own, uint32_t *left, struct xm_error *err)
{
    if (g->is_over)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the other processes of the MPI job have ended");
    XM_TRY(xm_mpi_check(
        MPI_Allgather(&own, 1, MPI_UINT64_T, g->sizes, 1, MPI_UINT64_T, g->comm),
        "MPI_Allgather", err));
    for (*left = 0; *left < g->base.ranks && is_size(g->sizes[*left]); ++*left)
        ;
    for (uint32_t r = 0; r < g->base.ranks; r++)
        g->is_over |= g->sizes[r] == ENDED;
    return XM_OK;
}

/* Gets the reason of the first rank that left and fails with it: "rank 2: the device is lost". All
 * ranks call it; then no message of this run is under way any more. */
static enum xm_status
hear(struct xm_mpi_group *g, uint32_t left, struct xm_error *err)
{
    struct xm_mpi_farewell said = g->is_told ? g->told : g->own;
    g->has_heard = true;
    XM_TRY(xm_mpi_check(MPI_Bcast(&said, sizeof(said), MPI_BYTE, (int)left, g->comm),
                        "MPI_Bcast", err));
    XM_TRY(xm_mpi_settle(g, err));
    said.why.text[sizeof(said.why.text) - 1] = '\0';
    return xm_fail(err, said.why.status == XM_OK ? XM_DEVICE : said.why.status,
                   "rank %u: %s", said.rank, said.why.text);
}

/* Takes part in one more meeting and tells why this rank leaves. `as` is LEFT or ENDED. A rank that
 * knows by a notice that another rank has left repeats that reason and sends no notices. */
static void
say_farewell(struct xm_mpi_group *g, uint64_t as, const struct xm_error *why)
{
    struct xm_error ignored = {0};
    uint32_t left;
    g->own = (struct xm_mpi_farewell){g->job_rank, *why};
    if (!g->is_told && xm_mpi_send_notices(g, &ignored) != XM_OK)
        return;
    if (tell_sizes(g, as, &left, &ignored) == XM_OK)
        (void)hear(g, left, &ignored);
}

/* Enlarges the buffer for the bytes of all ranks. All ranks know the same sizes, so they all call
 * it in the same meeting and agree if one of them has no memory: none waits in the next call. */
static enum xm_status
grow(struct xm_mpi_group *g, uint64_t bytes, struct xm_error *err)
{
    xm_free(g->bytes);
    g->bytes = xm_malloc((size_t)bytes);
    int has_memory = g->bytes != NULL;
    g->room = has_memory ? bytes : 0;
    XM_TRY(xm_mpi_check(
        MPI_Allreduce(MPI_IN_PLACE, &has_memory, 1, MPI_INT, MPI_LAND, g->comm),
        "MPI_Allreduce", err));
    if (has_memory)
        return XM_OK;
    xm_free(g->bytes);
    g->bytes = NULL;
    g->room = 0;
    g->has_heard = true; /* all ranks fail here: none has to be told     */
    return xm_no_memory(err, "an exchange of %" PRIu64 " bytes on a rank", bytes);
}

static enum xm_status
make_room(struct xm_mpi_group *g, struct xm_error *err)
{
    uint64_t all = 0;
    for (uint32_t r = 0; r < g->base.ranks; r++) {
        if (g->sizes[r] > INT_MAX || all > INT_MAX) {
            g->has_heard = true; /* all ranks fail here */
            return xm_fail(
                err, XM_UNSUPPORTED,
                "an exchange between ranks has 2 GiB or more; choose a smaller --ubatch");
        }
        g->counts[r] = (int)g->sizes[r];
        g->offsets[r] = (int)all;
        all += g->sizes[r];
    }
    return all <= g->room ? XM_OK : grow(g, all, err);
}

static enum xm_status
meet(struct xm_collective *c, struct xm_bytes mine, struct xm_bytes *all,
     struct xm_error *err)
{
    struct xm_mpi_group *g = (struct xm_mpi_group *)c;
    uint32_t left;
    XM_TRY(tell_sizes(g, mine.n, &left, err));
    if (left < c->ranks)
        return hear(g, left, err);
    XM_TRY(make_room(g, err));
    XM_TRY(xm_mpi_check(MPI_Allgatherv(mine.p, (int)mine.n, MPI_BYTE, g->bytes, g->counts,
                                       g->offsets, MPI_BYTE, g->comm),
                        "MPI_Allgatherv", err));
    for (uint32_t r = 0; r < c->ranks; r++)
        all[r] = (struct xm_bytes){g->bytes + g->offsets[r], g->sizes[r]};
    return XM_OK;
}

static enum xm_status
end_run(struct xm_collective *c, struct xm_error *err)
{
    struct xm_mpi_group *g = (struct xm_mpi_group *)c;
    uint32_t left;
    XM_TRY(tell_sizes(g, 0, &left, err));
    return left < c->ranks ? hear(g, left, err) : XM_OK;
}

static void
leave(struct xm_collective *c, const struct xm_error *why)
{
    struct xm_mpi_group *g = (struct xm_mpi_group *)c;
    if (!g->has_heard && !g->is_over)
        say_farewell(g, LEFT, why);
    g->has_heard = false; /* the next run starts anew */
}

static const struct xm_collective_ops ops = {.meet = meet,
                                             .send = xm_mpi_send,
                                             .receive = xm_mpi_receive,
                                             .end_run = end_run,
                                             .leave = leave};

/* ---- groups --------------------------------------------------------------------------- */

/* Takes part in one more meeting, so that processes that go on learn that this one has ended. */
static void
end_group(struct xm_mpi_group *g)
{
    static const struct xm_error why = {
        XM_UNSUPPORTED, "the process has ended while others still run: all processes "
                        "must run the same command on the same files"};
    if (!g->is_over)
        say_farewell(g, ENDED, &why);
}

static void
free_group(struct xm_collective *c)
{
    struct xm_mpi_group *g = (struct xm_mpi_group *)c;
    int is_over = 0;
    if (MPI_Finalized(&is_over) == MPI_SUCCESS && !is_over && g->comm != MPI_COMM_NULL) {
        if (g->peer)
            end_group(g);
        MPI_Comm_free(&g->comm);
    }
    xm_mpi_close_peers(g);
    xm_free(g->sizes);
    xm_free(g->counts);
    xm_free(g->offsets);
    xm_free(g->bytes);
    xm_free(g);
}

/* Runs at exit, for a program that ends without xm_mpi_end. */
static void
finalise(void)
{
    if (we_started)
        MPI_Finalize();
    we_started = false;
}

/* Starts MPI if the program has not. Several threads call MPI at once, so it must support
 * MPI_THREAD_MULTIPLE. */
static enum xm_status
start_locked(struct xm_error *err)
{
    int is_started = 0, level = 0;
    XM_TRY(xm_mpi_check(MPI_Initialized(&is_started), "MPI_Initialized", err));
    if (!is_started) {
        XM_TRY(xm_mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level),
                            "MPI_Init_thread", err));
        we_started = true;
        atexit(finalise);
    }
    XM_TRY(xm_mpi_check(MPI_Query_thread(&level), "MPI_Query_thread", err));
    return level >= MPI_THREAD_MULTIPLE
               ? XM_OK
               : xm_fail(err, XM_UNSUPPORTED,
                         "MPI was started without MPI_THREAD_MULTIPLE");
}

static enum xm_status
start(struct xm_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const enum xm_status s = start_locked(err);
    pthread_mutex_unlock(&lock);
    return s;
}

/* Makes the group's communicator; g->comm stays MPI_COMM_NULL if this process is no member. */
static enum xm_status
make_comm(struct xm_mpi_group *g, const bool *members, struct xm_error *err)
{
    int rank = 0, ranks = 0;
    XM_TRY(xm_mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank", err));
    XM_TRY(xm_mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI_Comm_size", err));
    if (ranks > XM_MOST_RANKS)
        return xm_fail(err, XM_UNSUPPORTED,
                       "a mesh has at most %d ranks, but this MPI job has %d",
                       XM_MOST_RANKS, ranks);
    g->job_rank = (uint32_t)rank;
    const int color = !members || members[rank] ? 0 : MPI_UNDEFINED;
    return xm_mpi_check(MPI_Comm_split(MPI_COMM_WORLD, color, rank, &g->comm),
                        "MPI_Comm_split", err);
}

static enum xm_status
fill(struct xm_mpi_group *g, struct xm_error *err)
{
    int rank = 0, ranks = 0;
    XM_TRY(xm_mpi_check(MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN),
                        "MPI_Comm_set_errhandler", err));
    XM_TRY(xm_mpi_check(MPI_Comm_rank(g->comm, &rank), "MPI_Comm_rank", err));
    XM_TRY(xm_mpi_check(MPI_Comm_size(g->comm, &ranks), "MPI_Comm_size", err));
    g->base = (struct xm_collective){&ops, (uint32_t)rank, (uint32_t)ranks};
    g->sizes = xm_calloc((size_t)ranks, sizeof(*g->sizes));
    g->counts = xm_calloc((size_t)ranks, sizeof(*g->counts));
    g->offsets = xm_calloc((size_t)ranks, sizeof(*g->offsets));
    return g->sizes && g->counts && g->offsets ? xm_mpi_open_peers(g, err)
                                               : xm_no_memory(err, "a mesh");
}

static enum xm_status
create(const bool *members, void (*say)(const char *sentence), struct xm_collective **out,
       struct xm_error *err)
{
    XM_TRY(start(err));
    struct xm_mpi_group *g = xm_calloc(1, sizeof(*g));
    if (!g)
        return xm_no_memory(err, "a mesh");
    g->comm = MPI_COMM_NULL;
    enum xm_status s = make_comm(g, members, err);
    if (s == XM_OK)
        s = xm_mpi_watch_start(say, err);
    const bool is_member = g->comm != MPI_COMM_NULL;
    if (s == XM_OK && is_member)
        s = fill(g, err);
    *out = s == XM_OK && is_member ? &g->base : NULL;
    if (!*out)
        free_group(&g->base);
    return s;
}

/* The time that mpirun gets to forward a process's last messages before MPI_Abort: MPICH's mpirun
 * forwards nothing more when it learns that a process aborts. Without the time, one of 30 messages
 * written just before was lost. */
#define LAST_WORDS_NS 100000000L

static void
end(int exit_code)
{
    if (we_started && exit_code) {
        const struct timespec last_words = {.tv_nsec = LAST_WORDS_NS};
        fflush(NULL);
        nanosleep(&last_words, NULL);
        MPI_Abort(MPI_COMM_WORLD, exit_code);
    }
    finalise();
}

__attribute__((visibility("default"))) const struct xm_mpi_module xm_mpi_module = {
    .version = XM_VERSION, .create = create, .free = free_group, .end = end};
