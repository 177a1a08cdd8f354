"""Memory that a command needs for a folder, in parts of the cluster that `python -m bench folder` has."""

from bench.folder import MEGABYTES, NODES, PODS, SMALLEST, measured, run, write

PART = 20
IMPORTS = 50  # megabytes, whatever the folder holds


def test_a_part_of_the_largest_folder_takes_a_part_of_its_memory(tmp_path):
    write(tmp_path, NODES // PART, PODS // PART)
    megabytes, _ = measured(tmp_path, "plan")
    assert megabytes <= IMPORTS + MEGABYTES // PART


def test_every_command_answers_about_the_smallest_folder():
    assert run(*SMALLEST)
