import { heading } from "../shared/states.js";
export const complete = { name: "complete", title: "complete", available: () => false, show(place) { place.append(heading("complete", "")); } };
