export module lab.middle;
export import lab.shape;
