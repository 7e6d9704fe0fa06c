"""`python -m hoofbeat`: the same as the command `hoofbeat`."""

from hoofbeat.cli import main

if __name__ == "__main__":
    main()
