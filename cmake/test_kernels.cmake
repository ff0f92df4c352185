# SPDX-License-Identifier: Apache-2.0
# xm_build_kernels_fast([EXCEPT TESTS …]): for the tests of this folder PoCL builds kernels without its optimiser
# where sanitizers look at our code, which takes half the time, and building is most of what tests
# of kernels do. With it, kernels run in the tests as released: every variant of products, experts
# and attention, and whole models; tools/test --release runs all tests so.
function(xm_build_kernels_fast)
    cmake_parse_arguments(ARG "" "" "EXCEPT" ${ARGN})
    get_property(tests DIRECTORY PROPERTY TESTS)
    if(ARG_EXCEPT)
        list(REMOVE_ITEM tests ${ARG_EXCEPT})
    endif()
    if(XM_SANITIZE)
        set_property(TEST ${tests} APPEND PROPERTY
                     ENVIRONMENT POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable)
    endif()
endfunction()
