/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of generate with a text, one message, a history, or a chat that the pipeline keeps. The
 * session reuses the positions that a chat shares with the previous call.
 */
#include <string.h>

#include "plugin/genai/genai.h"
#include "runtime/util/clock.h"

/* *has: whether the model has a chat template. Fails if the template is damaged. */
static enum xm_status
look_for_template(ov_genai_llm_pipeline *pipe, bool *has, struct xm_error *err)
{
    struct xm_error why = {0};
    const enum xm_status s =
        xm_package_read(pipe->package, XM_PACKAGE_CHAT_TEMPLATE, &why);
    *has = s == XM_OK;
    return s == XM_OK || s == XM_NOT_FOUND ? XM_OK : xm_fail(err, s, "%s", why.text);
}

static enum xm_status
need_template(ov_genai_llm_pipeline *pipe, struct xm_error *err)
{
    bool has;
    XM_TRY(look_for_template(pipe, &has, err));
    return has ? XM_OK
               : xm_fail(err, XM_NOT_FOUND, "a chat needs a model with a chat template");
}

static enum xm_status
run_messages(struct xm_genai_call *call, const ov_genai_chat_history *h,
             struct xm_error *err)
{
    struct xm_strbuf messages = {0}, variables = {0};
    xm_genai_history_messages(h, &messages);
    xm_genai_history_variables(h, &variables);
    call->prompt = (struct xm_prompt){.kind = XM_PROMPT_MESSAGES,
                                      .text = xm_strbuf_text(&messages),
                                      .n = messages.n,
                                      .variables = xm_strbuf_text(&variables)};
    const enum xm_status s = xm_strbuf_ok(&messages) && xm_strbuf_ok(&variables)
                                 ? xm_genai_run(call, err)
                                 : xm_no_memory(err, "a chat");
    xm_strbuf_free(&messages);
    xm_strbuf_free(&variables);
    return s;
}

static enum xm_status
run_history(struct xm_genai_call *call, const ov_genai_chat_history *h,
            struct xm_error *err)
{
    XM_TRY(need_template(call->pipe, err));
    return h->n > 0 ? run_messages(call, h, err)
                    : xm_fail(err, XM_INVALID,
                              "the chat history is empty, expected a message to answer");
}

/* Appends the answer to the chat: the first text, without the echoed prompt. */
static enum xm_status
say_answer(const struct xm_genai_call *call, ov_genai_chat_history *chat,
           struct xm_error *err)
{
    const struct xm_strbuf *text = &call->results->texts[0].text;
    return xm_genai_history_say(chat, "assistant", xm_strbuf_text(text) + call->echoed,
                                text->n - call->echoed, err);
}

/* Runs the next message of the pipeline's chat. If there is no answer, the message is removed from
 * the chat. */
static enum xm_status
run_chat(struct xm_genai_call *call, const char *inputs, struct xm_error *err)
{
    ov_genai_chat_history *chat = call->pipe->chat;
    XM_TRY(xm_genai_history_say(chat, "user", inputs, strlen(inputs), err));
    enum xm_status s = run_messages(call, chat, err);
    if (s == XM_OK && !call->is_cancelled)
        s = say_answer(call, chat, err);
    if (s != XM_OK || call->is_cancelled)
        xm_genai_history_pop(chat);
    return s;
}

static enum xm_status
run_inputs(struct xm_genai_call *call, const char *inputs, struct xm_error *err)
{
    ov_genai_chat_history one = {0};
    bool has_template;
    if (call->pipe->chat)
        return run_chat(call, inputs, err);
    XM_TRY(look_for_template(call->pipe, &has_template, err));
    call->prompt =
        (struct xm_prompt){.kind = XM_PROMPT_TEXT, .text = inputs, .n = strlen(inputs)};
    if (!has_template)
        return xm_genai_run(call, err);
    enum xm_status s = xm_genai_history_say(&one, "user", inputs, strlen(inputs), err);
    if (s == XM_OK)
        s = run_messages(call, &one, err);
    xm_genai_history_clear(&one);
    xm_free(one.messages);
    return s;
}

/* Generates from a text, or from a history. */
static ov_status_e
generate(struct xm_genai_call *call, const char *inputs,
         const ov_genai_chat_history *history, ov_genai_decoded_results **out)
{
    struct xm_error err = {0};
    const streamer_callback *streamer = call->streamer;
    if (!xm_api_is(call->pipe, XM_API_PIPELINE) ||
        (call->config && !xm_api_is(call->config, XM_API_CONFIG)) ||
        (!inputs && !xm_api_is(history, XM_API_HISTORY)) || (!out && !streamer) ||
        (streamer && !streamer->callback_func))
        return INVALID_C_PARAM;
    if (!xm_genai_lock(call->pipe, &err))
        return xm_genai_status(&err);
    enum xm_status s = ov_genai_decoded_results_create(&call->results) == OK
                           ? XM_OK
                           : xm_no_memory(&err, "results");
    if (s == XM_OK)
        s = history ? run_history(call, history, &err) : run_inputs(call, inputs, &err);
    xm_genai_unlock(call->pipe);
    if (s == XM_OK && out)
        *out = call->results;
    else
        ov_genai_decoded_results_free(call->results);
    return xm_genai_status(&err);
}

ov_status_e
ov_genai_llm_pipeline_generate(ov_genai_llm_pipeline *pipe, const char *inputs,
                               const ov_genai_generation_config *config,
                               const streamer_callback *streamer,
                               ov_genai_decoded_results **results)
{
    struct xm_genai_call call = {
        .pipe = pipe, .config = config, .streamer = streamer, .start = xm_now()};
    return generate(&call, inputs, NULL, results);
}

ov_status_e
ov_genai_llm_pipeline_generate_with_history(ov_genai_llm_pipeline *pipe,
                                            const ov_genai_chat_history *history,
                                            const ov_genai_generation_config *config,
                                            const streamer_callback *streamer,
                                            ov_genai_decoded_results **results)
{
    struct xm_genai_call call = {
        .pipe = pipe, .config = config, .streamer = streamer, .start = xm_now()};
    return generate(&call, NULL, history, results);
}

/* ---- a chat that the pipeline keeps -------------------------------------------------------- */

/* Removes the chat and the session, whose states hold the chat's positions. */
static void
forget_chat(ov_genai_llm_pipeline *pipe)
{
    ov_genai_chat_history_free(pipe->chat);
    pipe->chat = NULL;
    xm_session_destroy(pipe->session);
    pipe->session = NULL;
}

ov_status_e
ov_genai_llm_pipeline_start_chat(ov_genai_llm_pipeline *pipe)
{
    struct xm_error err = {0};
    if (!xm_api_is(pipe, XM_API_PIPELINE))
        return INVALID_C_PARAM;
    if (!xm_genai_lock(pipe, &err))
        return xm_genai_status(&err);
    if (need_template(pipe, &err) == XM_OK) {
        forget_chat(pipe);
        if (ov_genai_chat_history_create(&pipe->chat) != OV_GENAI_CHAT_HISTORY_OK)
            xm_no_memory(&err, "a chat");
    }
    xm_genai_unlock(pipe);
    return xm_genai_status(&err);
}

ov_status_e
ov_genai_llm_pipeline_finish_chat(ov_genai_llm_pipeline *pipe)
{
    struct xm_error err = {0};
    if (!xm_api_is(pipe, XM_API_PIPELINE))
        return INVALID_C_PARAM;
    if (!xm_genai_lock(pipe, &err))
        return xm_genai_status(&err);
    forget_chat(pipe);
    xm_genai_unlock(pipe);
    return OK;
}
