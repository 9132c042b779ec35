# cmake -DOUTPUT=file -DSOURCE=checkout -P write_revision.cmake: a header with the git revision of the checkout.
execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=* WORKING_DIRECTORY ${SOURCE}
                OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  set(revision "unknown")
endif()
file(WRITE ${OUTPUT} "#define ROPD_REVISION \"${revision}\"\n")
