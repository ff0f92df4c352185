/* SPDX-License-Identifier: Apache-2.0
 *
 * A sign of life is a message without bytes. A process that ends says so with its last message, and
 * the thread goes on until all others have said so, too: then each message has been received, as
 * MPI_Finalize demands.
 */
#include "runtime/mpi/mpi_watch.h"

#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/mpi/silence.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/number.h"

enum { ALIVE = 1, ENDING }; /* tags */

#define USUAL_LIMIT_S   3.0
#define INTERVALS       16 /* in the limit */
#define MOST_INTERVAL_S 0.25
#define ENDING_PAUSE_S  1e-3 /* between two looks for the last messages */
#define LAST_WORDS_S    0.1  /* for mpirun to forward the sentence */

static struct {
    bool is_started, is_ending;
    pthread_mutex_t lock; /* protects is_ending */
    pthread_cond_t ending;
    pthread_t thread;
    MPI_Comm comm;
    void (*say)(const char *sentence);
    struct xm_silence silence;
    MPI_Request sent[XM_MOST_RANKS]; /* the last message to each rank */
    bool has_told[XM_MOST_RANKS];    /* that message is, or will be, ENDING */
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
rest(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)(fmod(seconds, 1.0) * 1e9)};
    nanosleep(&t, NULL);
}

/* ---- messages --------------------------------------------------------------------------- */

/* Sends each rank a message, unless the last one to it has not left: then the rank gets no more
 * memory for messages that it does not read. Returns whether all have been told that this process
 * ends, and that has left. */
static bool
send_all(bool is_ending)
{
    bool is_done = is_ending;
    for (uint32_t r = 0; r < watch.silence.ranks; r++) {
        int has_left = 0;
        if (r == watch.silence.own)
            continue;
        if (MPI_Test(&watch.sent[r], &has_left, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            has_left = 0;
        is_done &= has_left && watch.has_told[r];
        if (!has_left || watch.has_told[r])
            continue;
        (void)MPI_Isend(NULL, 0, MPI_BYTE, (int)r, is_ending ? ENDING : ALIVE, watch.comm,
                        &watch.sent[r]);
        watch.has_told[r] = is_ending;
    }
    return is_done;
}

/* Receives all messages that have arrived. Returns whether all ranks have said that they end. */
static bool
hear_all(void)
{
    int found = 0;
    MPI_Status status;
    while (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, watch.comm, &found, &status) ==
               MPI_SUCCESS &&
           found) {
        const int from = status.MPI_SOURCE, tag = status.MPI_TAG;
        (void)MPI_Recv(NULL, 0, MPI_BYTE, from, tag, watch.comm, MPI_STATUS_IGNORE);
        xm_silence_heard(&watch.silence, (uint32_t)from);
        watch.silence.has_ended[from] |= tag == ENDING;
    }
    bool have_ended = true;
    for (uint32_t r = 0; r < watch.silence.ranks; r++)
        have_ended &= r == watch.silence.own || watch.silence.has_ended[r];
    return have_ended;
}

/* ---- the thread ------------------------------------------------------------------------- */

/* Ends this process at once: the program's other threads may wait inside MPI, and the driver's for
 * them. mpirun then ends the processes that still run. */
static void
give_up(uint32_t lost)
{
    struct xm_error text = {0};
    if (xm_silence_first(&watch.silence) == watch.silence.own) {
        (void)xm_fail(
            &text, XM_LOST,
            "rank %u has sent no sign of life for %g s: its process is stopped, "
            "or the link to its machine is cut (XM_RANK_TIMEOUT)",
            lost, watch.silence.limit_s);
        watch.say(text.text);
    } else {
        /* the sentence is another process's, which may notice up to two intervals later */
        rest(2 * watch.silence.interval_s);
    }
    rest(LAST_WORDS_S);
    _exit(EXIT_FAILURE);
}

/* Waits for the next interval, or until the process ends. Returns whether it does. */
static bool
wait_for_interval(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const double at = (double)until.tv_nsec * 1e-9 + watch.silence.interval_s;
    until.tv_sec += (time_t)at;
    until.tv_nsec = (long)(fmod(at, 1.0) * 1e9);
    pthread_mutex_lock(&watch.lock);
    int code = 0;
    while (!watch.is_ending && code == 0)
        code = pthread_cond_timedwait(&watch.ending, &watch.lock, &until);
    const bool is_ending = watch.is_ending;
    pthread_mutex_unlock(&watch.lock);
    return is_ending;
}

static void *
run(void *ctx)
{
    (void)ctx;
    for (bool is_ending = false;;) {
        const bool have_told = send_all(is_ending), have_ended = hear_all();
        const uint32_t lost = xm_silence_find(&watch.silence, xm_now());
        if (lost < watch.silence.ranks)
            give_up(lost);
        if (have_told && have_ended)
            return NULL;
        if (is_ending)
            rest(ENDING_PAUSE_S);
        else
            is_ending = wait_for_interval();
    }
}

/* The first thing that MPI_Finalize does: it deletes the attributes of MPI_COMM_SELF. */
static int
end(MPI_Comm self, int key, void *value, void *extra)
{
    (void)self, (void)key, (void)value, (void)extra;
    pthread_mutex_lock(&watch.lock);
    watch.is_ending = true;
    pthread_cond_signal(&watch.ending);
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.thread, NULL);
    return MPI_Comm_free(&watch.comm);
}

/* ---- starting --------------------------------------------------------------------------- */

/* Gets the limit of rank 0 in seconds; 0: the processes are not watched. */
static enum xm_status
find_limit(double *limit_s, struct xm_error *err)
{
    const char *text = xm_env("XM_RANK_TIMEOUT");
    char *end_of_number = NULL;
    *limit_s = text && *text ? xm_parse_double(text, &end_of_number) : USUAL_LIMIT_S;
    if (end_of_number && (end_of_number == text || *end_of_number))
        *limit_s = NAN;
    MPI_Bcast(limit_s, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return *limit_s >= 0.0 && isfinite(*limit_s)
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         "XM_RANK_TIMEOUT takes a number of seconds, or 0 for no limit");
}

static enum xm_status
start_thread(struct xm_error *err)
{
    sigset_t all, before;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&watch.ending, &clock);
    pthread_condattr_destroy(&clock);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for the program's threads */
    const int code = pthread_create(&watch.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code == 0 ? XM_OK : xm_no_memory(err, "the thread that watches other ranks");
}

enum xm_status
xm_mpi_watch_start(void (*say)(const char *sentence), struct xm_error *err)
{
    int rank = 0, ranks = 0, key = 0;
    double limit_s;
    if (watch.is_started)
        return XM_OK;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    XM_TRY(find_limit(&limit_s, err));
    watch.is_started = true;
    if (limit_s == 0.0 || ranks < 2)
        return XM_OK;
    MPI_Comm_dup(MPI_COMM_WORLD, &watch.comm);
    for (int r = 0; r < ranks; r++)
        watch.sent[r] = MPI_REQUEST_NULL;
    watch.say = say;
    xm_silence_begin(&watch.silence, (uint32_t)ranks, (uint32_t)rank, limit_s,
                     fmin(limit_s / INTERVALS, MOST_INTERVAL_S), xm_now());
    XM_TRY(start_thread(err));
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    return XM_OK;
}
