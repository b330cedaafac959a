# Runs a first program and looks at what it left: one complete file, and nothing beside it. With README, that page
# must show SOURCE as it is.
if(README)
  file(READ ${SOURCE} source)
  file(READ ${README} readme)
  string(FIND "${readme}" "${source}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "README.md does not show ${SOURCE} as it is")
  endif()
endif()

file(REMOVE_RECURSE ${FOLDER})
execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=RANK --unset=WORLD_SIZE --unset=WANDB_MODE RANKLOG_DIR=${FOLDER}
  RANKLOG_RUN_ID=first ${PROGRAM} RESULT_VARIABLE status ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${status}: ${errors}")
endif()
file(GLOB names RELATIVE ${FOLDER} ${FOLDER}/*/*/*)
list(SORT names)
set(wanted distributed-wandb/first/experiment.json distributed-wandb/first/rank-00000.db)
if(NOT names STREQUAL wanted)
  message(FATAL_ERROR "${FOLDER} holds ${names}, not ${wanted}")
endif()
