/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves and restores signal handlers and the signal mask around calls of the driver (ocl.h says
 * why). */
#include <pthread.h>
#include <string.h>

#include "runtime/ocl/ocl.h"
#include "runtime/util/mapped_file.h"

/* Signals for which LLVM installs handlers. With its handlers of the first ALWAYS_KEPT, the signals
 * no longer end the process. Its handlers of the others call the previous handler and so may stay,
 * unless the process was started with the signal ignored ("xemoe serve … &" in a script, nohup):
 * then LLVM's handler would remove xemoe's handlers of all signals, and nothing would end the
 * process. SIGBUS is handled by xm_mapped_file_keep_watch. */
static const int kept[OCL_KEPT_SIGNALS] = {SIGQUIT, SIGXCPU, SIGXFSZ,
                                           SIGINT,  SIGTERM, SIGHUP};
enum { ALWAYS_KEPT = 3 };

void
xm_ocl_keep_handlers(struct ocl_handlers *h)
{
    h->watches_files = xm_mapped_file_is_watched();
    for (int i = 0; i < OCL_KEPT_SIGNALS; i++) {
        memset(&h->before[i], 0, sizeof(h->before[i]));
        sigaction(kept[i], NULL, &h->before[i]);
    }
}

void
xm_ocl_restore_handlers(const struct ocl_handlers *h)
{
    struct sigaction now;
    xm_mapped_file_keep_watch(h->watches_files);
    for (int i = 0; i < OCL_KEPT_SIGNALS; i++) {
        if ((i < ALWAYS_KEPT || h->before[i].sa_handler == SIG_IGN) &&
            sigaction(kept[i], NULL, &now) == 0 &&
            now.sa_handler != h->before[i].sa_handler)
            sigaction(kept[i], &h->before[i], NULL);
    }
}

void
xm_ocl_keep_signals(struct ocl_signals *s)
{
    sigset_t interrupt;
    xm_ocl_keep_handlers(&s->handlers);
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &s->before);
}

void
xm_ocl_restore_signals(const struct ocl_signals *s)
{
    pthread_sigmask(SIG_SETMASK, &s->before, NULL);
    xm_ocl_restore_handlers(&s->handlers);
}
