#include "ranklog/cli/command.hpp"

int main(int argc, char** argv) {
  return ranklog::cli::run(argc, argv);
}
