"""The commands of `orbweaver`: options in, words out; what they do stands in the modules of `jobs`."""
