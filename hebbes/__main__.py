"""`python -m hebbes COMMAND`."""

from hebbes.programs.commands import main

if __name__ == "__main__":  # worker processes import this file
    main()
