/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_cancel.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "plugin/program_util/interrupt.h"

struct xm_benchmark_cancel {
    const struct xm_benchmark_run *run;
    pthread_t thread;
    int stop[2]; /* a pipe; readable when the thread must end */
};

/* Cancels the requests after Ctrl-C. Repeats that, because a cancel between two runs has no
 * effect. */
static void *
watch(void *arg)
{
    enum { AGAIN_MS = 10 };
    const struct xm_benchmark_cancel *c = arg;
    struct pollfd files[] = {{c->stop[0], POLLIN, 0}, {xm_cli_wake_fd(), POLLIN, 0}};
    int patience = -1;
    for (;;) {
        poll(files, 2, patience);
        if (files[0].revents)
            return NULL;
        if (!xm_cli_interrupted())
            continue;
        for (size_t i = 0; i < c->run->n_requests; i++)
            ov_infer_request_cancel(xm_benchmark_run_request(c->run, i));
        files[1].fd = -1;
        patience = AGAIN_MS;
    }
}

enum xm_status
xm_benchmark_cancel_begin(const struct xm_benchmark_run *r,
                          struct xm_benchmark_cancel **out, struct xm_error *err)
{
    struct xm_benchmark_cancel *c = xm_calloc(1, sizeof(*c));
    if (!c || pipe(c->stop) != 0) {
        xm_free(c);
        return xm_fail(err, XM_NO_MEMORY, "a thread for Ctrl-C cannot be started");
    }
    c->run = r;
    xm_cli_wake_drain();
    xm_cli_note_interrupt();
    if (pthread_create(&c->thread, NULL, watch, c) != 0) {
        xm_cli_release_interrupt();
        close(c->stop[0]);
        close(c->stop[1]);
        xm_free(c);
        return xm_fail(err, XM_NO_MEMORY, "a thread for Ctrl-C cannot be started");
    }
    *out = c;
    return XM_OK;
}

void
xm_benchmark_cancel_end(struct xm_benchmark_cancel *c)
{
    close(c->stop[1]);
    pthread_join(c->thread, NULL);
    close(c->stop[0]);
    xm_cli_release_interrupt();
    xm_free(c);
}
