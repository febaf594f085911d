import lyo.cli;

int main(int argc, char** argv) { return lyo::cli::main(argc, argv); }
