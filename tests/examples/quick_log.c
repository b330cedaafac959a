/* The smallest program in C that logs: 100 steps of one rank. */
#include <ranklog.h>
#include <stdio.h>

int main(void) {
  ranklog_options options;
  ranklog_error error;
  ranklog_writer* log;
  int step;

  ranklog_options_init(&options);
  options.project = "distributed-wandb";
  options.group = "my-experiment";
  log = ranklog_open(&options, &error);
  if (log == NULL) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  {
    const ranklog_field config[] = {ranklog_f64("learning_rate", 1e-3)};
    ranklog_config(log, config, 1);
  }
  for (step = 0; step < 100; ++step) {
    const ranklog_field row[] = {ranklog_f64("loss", 1.0 / (step + 1)), ranklog_f64("lr", 1e-3)};
    ranklog_log(log, step, row, 2);
  }
  ranklog_finish(log, RANKLOG_FINISHED, 0, NULL);
  ranklog_close(log);
  return 0;
}
