# SPDX-License-Identifier: Apache-2.0
# xm_precompile_test_headers(TARGET): precompiles the header that every test includes, which is then
# parsed once instead of once for each source. Not with ccache: a precompiled header differs with
# its path, so build folders would share no results.
if(NOT XM_CCACHE)
    file(WRITE ${CMAKE_BINARY_DIR}/gtest_headers.cpp "int\nmain()\n{\n    return 0;\n}\n")
    # An executable, because the header must be compiled with the flags of the tests.
    add_executable(gtest_headers ${CMAKE_BINARY_DIR}/gtest_headers.cpp)
    target_link_libraries(gtest_headers PRIVATE xm_flags GTest::gtest)
    target_precompile_headers(gtest_headers PRIVATE $<$<COMPILE_LANGUAGE:CXX>:<gtest/gtest.h>>)
endif()
function(xm_precompile_test_headers name)
    get_target_property(sources ${name} SOURCES)
    # Not for targets with C sources: CMake would need a precompiled header for C, too.
    if(TARGET gtest_headers AND NOT "${sources}" MATCHES "\\.c(;|$)")
        target_precompile_headers(${name} REUSE_FROM gtest_headers)
    endif()
endfunction()
