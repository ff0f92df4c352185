# SPDX-License-Identifier: Apache-2.0
# Seconds of the longest test programs, on two cores where nothing is built yet. CTest begins with
# those that cost most, so that none of them is alone at the end; the others need no row.
set(costs
    test_cli_mesh            180
    test_cli_golden          175
    test_memory              160
    test_genai               130
    test_cli_start           130
    test_api_errors          100
    test_cli_tune            100
    test_dry_onednn_models   60
    test_dry_onednn          50
    test_dry_gguf            45
    test_dry_run_current     60
    test_dry_run             45
    test_cli_selftest        30
    test_cli_gguf            30
    test_cli_kin             30
    test_remote_dry          30
    test_cli_benchmark_app   30
    test_chips               30
    test_cli_chat_terminal   25
    test_two_devices_current 20
    test_dry_gguf_current    20
    test_dry_chips_current   20
    test_cli_compile         20
    test_cli_gguf_context    20
    test_cli_parallel        20
    test_genai_cycles        20
    test_dry_benchmark       15
    test_api_gguf            15
    test_api_gguf_tokens     15)

# Programs with many cases that take long: tools/test runs a part of their cases (label long).
set(in_parts test_api_gguf test_api_gguf_tokens test_cli_bench test_cli_benchmark_app
    test_cli_chat_terminal test_cli_compile test_cli_gguf test_cli_golden test_cli_interrupt
    test_cli_kin test_cli_mesh test_cli_parallel test_cli_perplexity test_cli_selftest
    test_cli_start test_cli_tune test_memory)

# For the tests of the folder whose CMakeLists.txt calls it: their properties are set nowhere else.
function(xm_set_costs)
    get_property(tests DIRECTORY PROPERTY TESTS)
    foreach(name IN LISTS tests)
        list(FIND costs ${name} row)
        if(NOT row EQUAL -1)
            math(EXPR row "${row} + 1")
            list(GET costs ${row} seconds)
            set_tests_properties(${name} PROPERTIES COST ${seconds})
        endif()
        if(name IN_LIST in_parts)
            set_property(TEST ${name} APPEND PROPERTY LABELS long)
        endif()
    endforeach()
endfunction()
